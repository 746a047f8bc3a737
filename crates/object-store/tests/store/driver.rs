//! A driver whose requests fail or get an answer that the test chooses.

use std::fmt;
use std::sync::{Arc, Mutex};

use agent_checkpoint_object_store::object_store::path::Path;
use agent_checkpoint_object_store::object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};

/// Which requests fail, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The request is not done.
    Before,
    /// The request is done, but its answer is lost.
    After,
    /// The request is not done, and no answer ever comes.
    Never,
    /// A put is done twice, as by a driver that retries after a lost answer. The caller gets the second answer.
    Twice,
}

/// How a service treats the condition of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conditions {
    Kept,
    /// It writes regardless of the condition.
    Ignored,
    /// It answers that it does not support conditions.
    Refused,
}

/// An action that runs once, before the first request that begins with this kind and place.
type Before = (&'static str, Box<dyn FnOnce() + Send>);

pub(crate) struct Plan {
    before: Option<Before>,
    /// The request this many later fails.
    pub(crate) next: Option<(usize, Cut)>,
    pub(crate) conditions: Conditions,
    /// The kind and the place of each request.
    pub(crate) asked: Vec<String>,
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

/// The in-memory driver with planned failures.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) objects: Arc<dyn ObjectStore>,
    pub(crate) plan: Arc<Mutex<Plan>>,
}

impl Planned {
    pub(crate) fn new(objects: Arc<dyn ObjectStore>) -> Planned {
        let plan = Plan {
            before: None,
            next: None,
            conditions: Conditions::Kept,
            asked: Vec::new(),
        };
        let plan = Arc::new(Mutex::new(plan));
        Planned { objects, plan }
    }

    /// Runs `what` before the first request of this kind.
    pub(crate) fn before(&self, request: &'static str, what: impl FnOnce() + Send + 'static) {
        self.plan.lock().unwrap().before = Some((request, Box::new(what)));
    }

    /// Records a request and returns whether it fails.
    fn asked(&self, kind: &str, place: &Path) -> Option<Cut> {
        let asked = format!("{kind} {place}");
        let is_it = |(request, _): &mut Before| asked.starts_with(*request);
        let before = self.plan.lock().unwrap().before.take_if(is_it);
        if let Some((_, what)) = before {
            what();
        }
        let mut plan = self.plan.lock().unwrap();
        plan.asked.push(asked);
        let (later, how) = plan.next?;
        plan.next = later.checked_sub(1).map(|later| (later, how));
        plan.next.is_none().then_some(how)
    }

    /// The requests since the last call.
    pub(crate) fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.plan.lock().unwrap().asked)
    }
}

fn broken() -> Error {
    Error::Generic {
        store: "Planned",
        source: "the connection broke".into(),
    }
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Planned({})", self.objects)
    }
}

#[async_trait]
impl ObjectStore for Planned {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        mut opts: PutOptions,
    ) -> Result<PutResult> {
        let conditions = self.plan.lock().unwrap().conditions;
        let kind = match (&opts.mode, conditions) {
            (PutMode::Overwrite, _) => "put",
            (_, Conditions::Refused) => {
                return Err(Error::NotImplemented {
                    operation: "a conditional put".to_owned(),
                    implementer: self.to_string(),
                });
            }
            (_, Conditions::Ignored) => {
                opts.mode = PutMode::Overwrite;
                "put"
            }
            (PutMode::Create, _) => "create",
            (PutMode::Update(_), _) => "update",
        };
        let cut = self.asked(kind, location);
        match cut {
            Some(Cut::Before) => return Err(broken()),
            Some(Cut::Never) => std::future::pending().await,
            Some(Cut::Twice) => {
                let (payload, opts) = (payload.clone(), opts.clone());
                let _lost = self.objects.put_opts(location, payload, opts).await;
            }
            _ => {}
        }
        let answer = self.objects.put_opts(location, payload, opts).await;
        match cut {
            None | Some(Cut::Twice) => answer,
            Some(_) => Err(broken()),
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.objects.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        match self.asked("get", location) {
            Some(Cut::Never) => std::future::pending().await,
            Some(_) => Err(broken()),
            None => self.objects.get_opts(location, options).await,
        }
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        match self.asked("delete", &Path::default()) {
            Some(Cut::Before) => stream::iter([Err(broken())]).boxed(),
            Some(Cut::Never) => stream::pending().boxed(),
            Some(Cut::After | Cut::Twice) => {
                let deleted = self.objects.delete_stream(locations);
                deleted.chain(stream::iter([Err(broken())])).boxed()
            }
            None => self.objects.delete_stream(locations),
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.asked("list", prefix.unwrap_or(&Path::default())) {
            Some(_) => stream::iter([Err(broken())]).boxed(),
            None => self.objects.list(prefix),
        }
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.asked("list", offset) {
            Some(_) => stream::iter([Err(broken())]).boxed(),
            None => self.objects.list_with_offset(prefix, offset),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.objects.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.objects.copy_opts(from, to, options).await
    }
}
