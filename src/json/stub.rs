//! stub until the writer lands
use super::{Document, EditError, Reading};
/// .
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// .
    pub list: &'static str,
    /// .
    pub by: &'static [&'static str],
}
/// .
#[derive(Clone, Debug, Default)]
pub struct Rewrite {
    /// .
    pub identities: &'static [Identity],
    /// .
    pub allow_loss: bool,
}
/// .
#[derive(Debug)]
pub struct Rewritten {
    /// .
    pub document: Document,
    /// .
    pub changed: bool,
    /// .
    pub lost: Vec<String>,
}
/// .
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RewriteError {
    /// .
    #[error("loss")]
    Loss {
        /// .
        pointers: Vec<String>,
    },
    /// .
    #[error(transparent)]
    Edit(#[from] EditError),
    /// .
    #[error("x")]
    Other,
}
impl Document {
    /// .
    pub fn rewrite<T: serde::Serialize>(
        &self,
        _r: &Reading<T>,
        wanted: &T,
        _o: &Rewrite,
    ) -> Result<Rewritten, RewriteError> {
        Ok(Rewritten {
            document: Document::new(wanted)?,
            changed: true,
            lost: vec![],
        })
    }
}
