//! The driver, for the S3 server of the tests.

use std::sync::Arc;

use agent_checkpoint_object_store::object_store::aws::{AmazonS3, AmazonS3Builder};
use agent_checkpoint_object_store::object_store::{ClientOptions, RetryConfig};

use crate::server::{BUCKET, ID, SECRET};

/// The driver for the server at this port; it repeats no request by itself.
pub(crate) fn driver_at(port: u16) -> Arc<AmazonS3> {
    let retry = RetryConfig {
        max_retries: 0,
        ..RetryConfig::default()
    };
    Arc::new(builder_at(port).with_retry(retry).build().unwrap())
}

pub(crate) fn builder_at(port: u16) -> AmazonS3Builder {
    // The server uses no TLS; loading the system's certificates takes a tenth of a second.
    let options = ClientOptions::new()
        .with_allow_http(true)
        .with_no_system_certificates(true);
    AmazonS3Builder::new()
        .with_endpoint(format!("http://127.0.0.1:{port}"))
        .with_client_options(options)
        .with_region("us-east-1")
        .with_bucket_name(BUCKET)
        .with_access_key_id(ID)
        .with_secret_access_key(SECRET)
}
