//! A call to the file system that fails, for stores that are built on `fsio`.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use crate::fsio::seam::{Call, Verdict, Watch, watched};

/// Calls `run` while call number `number`, from 0, that this thread makes through [`fsio`](crate::fsio)
/// fails. Says whether `run` came to that call. What [`Place::fail`](super::Place::fail) of a store of files
/// is.
pub fn fail_call(number: usize, run: &mut dyn FnMut()) -> bool {
    let watch = Rc::new(RefCell::new(Nth { number, seen: 0 }));
    watched(Rc::clone(&watch) as Rc<RefCell<dyn Watch>>, run);
    let seen = watch.borrow().seen;
    seen > number
}

struct Nth {
    number: usize,
    seen: usize,
}

impl Watch for Nth {
    fn before(&mut self, _: &Call<'_>) -> Verdict {
        let this = self.seen;
        self.seen += 1;
        match this == self.number {
            true => Verdict::Fail(io::Error::other("this call is made to fail")),
            false => Verdict::Go,
        }
    }
}
