//! The place of a store in a bucket, and whether a store can be there.

use std::sync::Arc;

use agent_checkpoint::Result;
use object_store::path::Path;
use object_store::{ObjectStore, PutMode, UpdateVersion};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::failure::{Cause, Failure, no_compare_and_swap, other};
use crate::head::LAYOUT;
use crate::remote::{Got, Remote, Time};

/// The longest root in bytes. The services accept 1,024 bytes, of which the rest of a path may need 700.
const ROOT_BYTES: usize = 300;

/// The path of the folder of a store.
#[derive(Clone, Debug)]
pub(crate) struct Place(String);

/// The content of the object that marks a store.
#[derive(Serialize, Deserialize)]
struct Laid {
    layout: u64,
}

impl Place {
    pub(crate) fn new(root: &str) -> Result<Place> {
        let root = path(root.to_owned())?;
        if root.as_ref().len() > ROOT_BYTES {
            let message = format!(
                "the path is too long for an object store; use one of up to {ROOT_BYTES} bytes"
            );
            return Err(other("path-too-long", message).with_path(root.as_ref()));
        }
        Ok(Place(root.to_string()))
    }

    /// The object of the key with this name, or the folder of all such objects.
    pub(crate) fn document(&self, name: &str) -> Result<Path> {
        path(format!("{}/documents/{name}", self.0))
    }

    /// An object beside the document of the key with this name, or the folder of all of them.
    pub(crate) fn beside(&self, name: &str, part: &str) -> Result<Path> {
        path(format!("{}/beside/{name}/{part}", self.0))
    }

    /// The folder of these objects, for messages.
    pub(crate) fn folder_beside(&self, name: &str) -> String {
        let folder = format!("{}/beside/{name}/", self.0);
        folder.trim_start_matches('/').to_owned()
    }

    /// Creates the store if it is missing and `makes` is set. Then checks that the service honours the conditions of
    /// puts. Returns the layout number if it is a newer one.
    pub(crate) fn prepare(&self, remote: &Remote, makes: bool, time: Time) -> Result<Option<u64>> {
        let path = path(format!("{}/agent-checkpoint.json", self.0))?;
        let failed = |failure: Failure| failure.into_error().with_path(path.as_ref());
        let ours = serde_json::to_vec(&Laid { layout: LAYOUT }).unwrap_or_default();
        let there = match remote.get(&path, 1 << 16, time) {
            Ok(Got::Whole(object)) => object.bytes,
            Ok(Got::TooLarge(_)) => Vec::new(),
            Err(Failure::Absent) if !makes => {
                let message =
                    "there is no store here; check the address, or open it in a way that makes one";
                return Err(other("no-store", message).with_path(path.as_ref()));
            }
            Err(Failure::Absent) => {
                let first = vec![(path.clone(), ours.clone(), PutMode::Create)];
                remote.put_all(first, time).map_err(failed)?;
                ours
            }
            Err(failure) => return Err(failed(failure)),
        };
        let Ok(laid) = serde_json::from_slice::<Laid>(&there) else {
            let message =
                "is not what this store writes there; nothing was written, name another place";
            return Err(other("not-a-store", message).with_path(path.as_ref()));
        };
        // If the service does one of these puts anyway, nothing changes: the bytes are the same.
        let never = UpdateVersion {
            e_tag: Some("\"0x0\"".to_owned()),
            version: Some("1".to_owned()),
        };
        for mode in [PutMode::Create, PutMode::Update(never)] {
            match remote.put_once(&path, there.clone(), mode, time) {
                Err(Failure::Lost) => {}
                Ok(()) => return Err(no_compare_and_swap().with_path(path.as_ref())),
                Err(failure) => return Err(failed(failure)),
            }
        }
        Ok((laid.layout > LAYOUT).then_some(laid.layout))
    }
}

fn path(text: String) -> Result<Path> {
    Path::parse(text.trim_matches('/')).map_err(|error| {
        let error = object_store::Error::from(error);
        other("invalid-place", "is not a path in an object store").with_source(Cause::of(&error))
    })
}

/// The driver for a URL, and the path in the bucket.
pub(crate) fn from_url(address: &str) -> Result<(Arc<dyn ObjectStore>, String)> {
    let invalid = |message: &str| other("invalid-place", message);
    // Messages do not quote the URL, because it may have a password.
    let address = Url::parse(address).map_err(|error| {
        invalid("is not an address, such as `s3://bucket/path`").with_source(error)
    })?;
    if !address.username().is_empty() || address.password().is_some() {
        return Err(invalid(
            "the address has credentials in it; give them in the environment",
        ));
    }
    let is_for_driver = |name: &str| {
        let kinds = ["AWS_", "AZURE_", "GOOGLE_"];
        kinds.iter().any(|kind| name.starts_with(kind))
    };
    let options = std::env::vars_os().filter_map(|(name, value)| {
        let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
        is_for_driver(&name).then_some((name, value))
    });
    let (objects, path) = object_store::parse_url_opts(&address, options).map_err(|error| {
        let message = "the driver rejects this address, or the settings for it in the environment; see the cause";
        invalid(message).with_source(Cause::of(&error))
    })?;
    Ok((Arc::from(objects), path.to_string()))
}
