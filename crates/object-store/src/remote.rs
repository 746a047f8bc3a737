//! Requests to the object store, from any thread. They run on a separate thread.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent_checkpoint::{Error, ErrorKind, Result};
use futures_util::{StreamExt, stream};
use object_store::path::Path;
use object_store::{
    GetOptions, ObjectMeta, ObjectStore, PutMode, PutOptions, PutPayload, UpdateVersion,
};
use tokio::sync::mpsc;

use crate::failure::{Cause, Failure, other};

type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

/// How many requests of one call run at the same time.
const AT_ONCE: usize = 16;

/// A driver and its thread. Callers only wait for it, so they may be in any runtime or in none.
#[derive(Debug)]
pub(crate) struct Remote {
    pub(crate) objects: Arc<dyn ObjectStore>,
    /// The thread ends when this is dropped.
    jobs: mpsc::UnboundedSender<Job>,
}

/// An object as it was read.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) bytes: Vec<u8>,
    pub(crate) version: UpdateVersion,
}

/// The object is larger than allowed; its size.
pub(crate) enum Got {
    Whole(Object),
    TooLarge(u64),
}

impl Remote {
    pub(crate) fn start(objects: Arc<dyn ObjectStore>) -> Result<Remote> {
        let (jobs, mut todo) = mpsc::unbounded_channel::<Job>();
        let failed = |error: std::io::Error| Error::new(ErrorKind::Io).with_source(error);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let work = move || {
            runtime.block_on(async {
                while let Some(job) = todo.recv().await {
                    tokio::spawn(job);
                }
            });
        };
        let thread = std::thread::Builder::new().name("checkpoint-objects".to_owned());
        thread.spawn(work).map_err(failed)?;
        Ok(Remote { objects, jobs })
    }

    /// Runs `work` on the thread and waits for it.
    fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        let (answer, answered) = std::sync::mpsc::sync_channel(1);
        let job = Box::pin(async move {
            let _caller_waits = answer.send(work.await);
        });
        let sent = self.jobs.send(job).is_ok();
        match answered.recv() {
            Ok(answer) if sent => answer,
            // A panic of the driver ends only its own task. After a fork there is no thread.
            _ => {
                let message = "this store can no longer make requests; open it again";
                Err(Failure::Refused(other("driver-failed", message)))
            }
        }
    }

    /// The object, unless it is larger than `most`.
    pub(crate) fn get(&self, path: &Path, most: u64, time: Time) -> Result<Got, Failure> {
        let (objects, path) = (self.objects.clone(), path.clone());
        self.run(async move { get(&*objects, &path, most, time).await })
    }

    /// Several objects at once, in this order.
    pub(crate) fn get_all(
        &self,
        paths: Vec<Path>,
        most: u64,
        time: Time,
    ) -> Result<Vec<Result<Got, Failure>>, Failure> {
        let objects = self.objects.clone();
        self.run(async move {
            let objects = &objects;
            let all = paths.into_iter();
            let all = all.map(|path| async move { get(&**objects, &path, most, time).await });
            Ok(stream::iter(all).buffered(AT_ONCE).collect().await)
        })
    }

    /// One conditional put, without retries.
    pub(crate) fn put_once(
        &self,
        path: &Path,
        bytes: Vec<u8>,
        mode: PutMode,
        time: Time,
    ) -> Result<(), Failure> {
        let (objects, path) = (self.objects.clone(), path.clone());
        self.run(async move {
            let put = objects.put_opts(&path, PutPayload::from(bytes), PutOptions::from(mode));
            within(time.each, put).await.map(drop)
        })
    }

    /// Writes objects, all at once. An object whose condition fails counts as written: the one that exists has the same
    /// content.
    pub(crate) fn put_all(
        &self,
        all: Vec<(Path, Vec<u8>, PutMode)>,
        time: Time,
    ) -> Result<(), Failure> {
        let objects = self.objects.clone();
        self.run(async move {
            let puts = all.into_iter().map(|(path, bytes, mode)| {
                let (objects, payload) = (objects.clone(), PutPayload::from(bytes));
                async move {
                    let put = || {
                        let options = PutOptions::from(mode.clone());
                        objects.put_opts(&path, payload.clone(), options)
                    };
                    match patiently(time, put).await {
                        Ok(_) | Err(Failure::Lost) => Ok(()),
                        Err(failure) => Err(failure),
                    }
                }
            });
            let mut puts = stream::iter(puts).buffer_unordered(AT_ONCE);
            while let Some(put) = puts.next().await {
                put?;
            }
            Ok(())
        })
    }

    /// Removes objects. A missing one counts as removed.
    pub(crate) fn delete_all(&self, paths: Vec<Path>, time: Time) -> Result<(), Failure> {
        let objects = self.objects.clone();
        self.run(async move {
            let delete = || async {
                let paths = stream::iter(paths.clone().into_iter().map(Ok)).boxed();
                let mut deleted = objects.delete_stream(paths);
                while let Some(one) = deleted.next().await {
                    match one {
                        Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(())
            };
            patiently(time, delete).await
        })
    }

    /// The objects below `folder` and after `after`, for as long as `take` returns `true`.
    pub(crate) fn list(
        &self,
        folder: &Path,
        after: Option<Path>,
        take: impl Fn(usize, &ObjectMeta) -> bool + Clone + Send + Sync + 'static,
        time: Time,
    ) -> Result<Vec<ObjectMeta>, Failure> {
        let (objects, folder) = (self.objects.clone(), folder.clone());
        self.run(async move {
            let list = || async {
                let mut listed = match &after {
                    Some(after) => objects.list_with_offset(Some(&folder), after),
                    None => objects.list(Some(&folder)),
                };
                let mut found = Vec::new();
                while let Some(object) = listed.next().await.transpose()? {
                    if !take(found.len(), &object) {
                        break;
                    }
                    found.push(object);
                }
                Ok(found)
            };
            patiently(time, list).await
        })
    }
}

/// The time limits of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time {
    /// When a call gives up.
    pub(crate) until: Instant,
    /// The time limit of one request.
    pub(crate) each: Duration,
}

impl Time {
    pub(crate) fn of(timeout: Duration) -> Time {
        let now = Instant::now();
        Time {
            // A timeout beyond the range of the clock is cut to a year.
            until: now.checked_add(timeout).unwrap_or(now + FOREVER),
            each: timeout.min(FOREVER) / 2,
        }
    }
}

const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

async fn get(
    objects: &dyn ObjectStore,
    path: &Path,
    most: u64,
    time: Time,
) -> Result<Got, Failure> {
    patiently(time, || async {
        let got = objects.get_opts(path, GetOptions::default()).await?;
        if got.meta.size > most {
            return Ok(Got::TooLarge(got.meta.size));
        }
        let version = UpdateVersion {
            e_tag: got.meta.e_tag.clone(),
            version: got.meta.version.clone(),
        };
        let bytes = got.bytes().await?.to_vec();
        Ok(Got::Whole(Object { bytes, version }))
    })
    .await
}

async fn within<T>(
    time: Duration,
    request: impl Future<Output = object_store::Result<T>>,
) -> Result<T, Failure> {
    match tokio::time::timeout(time, request).await {
        Ok(answer) => answer.map_err(Failure::from),
        Err(_) => Err(Failure::Unknown(Cause::timed_out(time))),
    }
}

/// Makes an idempotent request, and retries it until an answer comes.
async fn patiently<T, F: Future<Output = object_store::Result<T>>>(
    time: Time,
    request: impl Fn() -> F,
) -> Result<T, Failure> {
    let mut wait = Wait::default();
    loop {
        match within(time.each, request()).await {
            Err(Failure::Unknown(_)) if Instant::now() + wait.next < time.until => {
                tokio::time::sleep(wait.take()).await;
            }
            answer => return answer,
        }
    }
}

/// The pause before the next try: longer each time, and random so that two callers differ.
#[derive(Debug)]
pub(crate) struct Wait {
    pub(crate) next: Duration,
}

impl Default for Wait {
    fn default() -> Self {
        let next = Duration::from_millis(10);
        Wait { next }
    }
}

impl Wait {
    pub(crate) fn take(&mut self) -> Duration {
        let most = self.next;
        self.next = (most * 2).min(Duration::from_secs(1));
        let part = u32::try_from(random() % 1024).unwrap_or_default();
        most / 2 + most / 2 * part / 1024
    }
}

/// A random number.
pub(crate) fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}
