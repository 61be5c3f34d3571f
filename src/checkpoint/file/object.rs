//! A prefix of an object store as the place of checkpoints.
//!
//! There is no lock: a manifest is made by create-if-absent, so that of two processes on one prefix
//! the second to finish a checkpoint is refused, and data files carry a token of their process in
//! their names, so that none overwrites another's.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::Bytes;
use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use object_store::{
    Error as StoreError, MultipartUpload, ObjectStore, ObjectStoreExt, PutMode, PutPayload,
    RetryConfig,
};
use tokio::runtime::{Builder, Runtime};

use super::files::{Existing, FileWriter, Files, Published};
use crate::error::{Error, Result};

/// A larger file is written in parts of this size.
const PART: usize = 8 << 20;

/// How to reach a bucket of S3, or of a store that speaks its language. What is not set comes from
/// the environment (`AWS_ACCESS_KEY_ID` and so on).
#[derive(Clone, Default)]
pub struct S3Options {
    /// `s3.endpoint`: a URL, for stores other than Amazon's.
    pub endpoint: Option<String>,
    /// `s3.access-key`.
    pub access_key: Option<String>,
    /// `s3.secret-key`.
    pub secret_key: Option<String>,
    /// `s3.path.style.access`: the bucket stands in the path of URLs, not in the name of the host.
    pub path_style: bool,
    /// `s3.region`.
    pub region: Option<String>,
}

impl fmt::Debug for S3Options {
    /// Without credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3Options")
            .field("endpoint", &self.endpoint)
            .field("path_style", &self.path_style)
            .field("region", &self.region)
            .finish_non_exhaustive()
    }
}

struct Shared {
    store: Arc<dyn ObjectStore>,
    /// Ends with its calls: an option only for that.
    runtime: Option<Runtime>,
    prefix: String,
    place: String,
}

/// The files under a prefix.
#[derive(Clone)]
pub(super) struct Bucket(Arc<Shared>);

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bucket").field(&self.0.place).finish()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // A runtime may not wait for its threads where the last owner is a thread of another.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Bucket {
    /// The files under `url`: `s3://bucket/path`, or `s3a://`.
    pub(super) fn s3(url: &str, options: &S3Options) -> Result<Self> {
        let wrong = || {
            Error::options(format!("'{url}' is no place in an object store"))
                .hint("write s3://bucket/path")
        };
        let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if !["s3", "s3a", "s3p"].contains(&scheme) || bucket.is_empty() {
            return Err(wrong());
        }
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(bucket)
            .with_virtual_hosted_style_request(!options.path_style)
            .with_retry(RetryConfig {
                max_retries: 5,
                retry_timeout: Duration::from_secs(60),
                ..RetryConfig::default()
            });
        if let Some(endpoint) = &options.endpoint {
            let http = endpoint.starts_with("http://");
            builder = builder.with_endpoint(endpoint).with_allow_http(http);
        }
        if let Some(key) = &options.access_key {
            builder = builder.with_access_key_id(key);
        }
        if let Some(key) = &options.secret_key {
            builder = builder.with_secret_access_key(key);
        }
        if let Some(region) = &options.region {
            builder = builder.with_region(region);
        }
        let store = builder.build();
        let store = store.map_err(|e| Error::options(format!("cannot open {url}: {e}")))?;
        Self::of(Arc::new(store), prefix, url)
    }

    /// The files under `prefix` of `store`.
    pub(super) fn of(store: Arc<dyn ObjectStore>, prefix: &str, place: &str) -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("object store")
            .enable_all()
            .build();
        let runtime = runtime.map_err(|e| Error::checkpoint(format!("cannot start: {e}")))?;
        Ok(Self(Arc::new(Shared {
            store,
            runtime: Some(runtime),
            prefix: prefix.trim_matches('/').to_string(),
            place: place.trim_end_matches('/').to_string(),
        })))
    }

    fn path(&self, name: &str) -> Path {
        Path::from(format!("{}/{name}", self.0.prefix))
    }

    fn failed(&self, verb: &str, name: &str, error: &StoreError) -> Error {
        let text = format!("cannot {verb} {}/{name}: {error}", self.0.place);
        let damaged = matches!(error, StoreError::NotFound { .. });
        let error_ = if verb == "read" && !damaged {
            // What cannot be read now may be whole: nobody must take it for damaged.
            Error::connector(text)
        } else {
            Error::checkpoint(text)
        };
        match error {
            StoreError::Unauthenticated { .. } | StoreError::PermissionDenied { .. } => {
                error_.hint("check 's3.access-key' and 's3.secret-key', or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
            }
            StoreError::NotFound { .. } => error_.hint("check the name of the bucket"),
            _ => error_,
        }
    }

    /// Waits for a call, on whatever thread this is.
    fn wait<T, F>(&self, call: impl FnOnce(Arc<dyn ObjectStore>) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let future = call(Arc::clone(&self.0.store));
        self.wait_for(future)
    }

    fn wait_for<T>(&self, future: impl Future<Output = T> + Send + 'static) -> Result<T>
    where
        T: Send + 'static,
    {
        let (sender, receiver) = mpsc::channel();
        let lost = || Error::internal("a call to an object store came to no end");
        let runtime = self.0.runtime.as_ref().ok_or_else(lost)?;
        runtime.spawn(async move {
            // Nobody waits for it after a panic only.
            let _ = sender.send(future.await);
        });
        receiver.recv().map_err(|_| lost())
    }

    fn get(&self, name: &str) -> Result<Vec<u8>> {
        let path = self.path(name);
        let got = self.wait(|store| async move { store.get(&path).await?.bytes().await })?;
        let got = got.map_err(|e| self.failed("read", name, &e))?;
        Ok(got.to_vec())
    }
}

impl Files for Bucket {
    fn list(&self) -> Result<Vec<String>> {
        let prefix = Path::from(self.0.prefix.as_str());
        let listed =
            self.wait(|store| async move { store.list_with_delimiter(Some(&prefix)).await })?;
        let listed = listed.map_err(|e| self.failed("list", "", &e))?;
        let names = listed.objects.iter().filter_map(|o| o.location.filename());
        Ok(names.map(str::to_string).collect())
    }

    fn read(&self, name: &str) -> Result<Vec<u8>> {
        self.get(name)
    }

    fn read_range(&self, name: &str, offset: u64, length: u64) -> Result<Vec<u8>> {
        let end = offset.checked_add(length);
        let end = end.ok_or_else(|| Error::checkpoint(format!("{name} is not that long")))?;
        if length == 0 {
            return Ok(Vec::new());
        }
        let path = self.path(name);
        let got = self.wait(|store| async move { store.get_range(&path, offset..end).await })?;
        let got = got.map_err(|e| self.failed("read", name, &e))?;
        Ok(got.to_vec())
    }

    fn create(&self, name: &str) -> Result<Box<dyn FileWriter>> {
        Ok(Box::new(Upload {
            bucket: self.clone(),
            name: name.to_string(),
            open: Vec::new(),
            parts: None,
        }))
    }

    fn publish(&self, name: &str, bytes: &[u8], existing: Existing) -> Result<Published> {
        let path = self.path(name);
        let payload = PutPayload::from(Bytes::copy_from_slice(bytes));
        let mode = match existing {
            Existing::Refuse => PutMode::Create,
            Existing::Replace => PutMode::Overwrite,
        };
        let put =
            self.wait(|store| async move { store.put_opts(&path, payload, mode.into()).await })?;
        match put {
            Ok(_) => Ok(Published::Done),
            Err(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }) => {
                // The answer to a first attempt may have been lost on the way.
                let same = self.get(name)? == bytes;
                Ok(if same {
                    Published::Done
                } else {
                    Published::Taken
                })
            }
            Err(e) => Err(self.failed("write", name, &e)),
        }
    }

    fn remove(&self, name: &str) -> Result<()> {
        let path = self.path(name);
        match self.wait(|store| async move { store.delete(&path).await })? {
            Ok(()) | Err(StoreError::NotFound { .. }) => Ok(()),
            Err(e) => Err(self.failed("remove", name, &e)),
        }
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn place(&self) -> String {
        self.0.place.clone()
    }
}

struct Upload {
    bucket: Bucket,
    name: String,
    /// What no part has taken yet.
    open: Vec<u8>,
    parts: Option<Box<dyn MultipartUpload>>,
}

impl Upload {
    fn put_part(&mut self) -> Result<()> {
        let bucket = self.bucket.clone();
        let failed = |e| bucket.failed("write", &self.name, &e);
        let mut parts = match self.parts.take() {
            Some(parts) => parts,
            None => {
                let path = bucket.path(&self.name);
                let begun = bucket.wait(|store| async move { store.put_multipart(&path).await })?;
                begun.map_err(failed)?
            }
        };
        let part = PutPayload::from(std::mem::take(&mut self.open));
        let put = parts.put_part(part);
        self.parts = Some(parts);
        bucket.wait_for(put)?.map_err(failed)
    }
}

impl FileWriter for Upload {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.open.extend_from_slice(bytes);
        if self.open.len() >= PART {
            self.put_part()?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        let bucket = self.bucket.clone();
        let name = self.name.clone();
        let failed = |e| bucket.failed("write", &name, &e);
        if self.parts.is_none() {
            let path = bucket.path(&name);
            let payload = PutPayload::from(std::mem::take(&mut self.open));
            let put = bucket.wait(|store| async move { store.put(&path, payload).await })?;
            return put.map(|_| ()).map_err(failed);
        }
        if !self.open.is_empty() {
            self.put_part()?;
        }
        if let Some(mut parts) = self.parts.take() {
            let completed = bucket.wait_for(async move { parts.complete().await })?;
            completed.map_err(failed)?;
        }
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some(mut parts) = self.parts.take() {
            // Best effort: parts that nobody completes are swept by the bucket's own rules.
            let _ = self.bucket.wait_for(async move { parts.abort().await });
        }
    }
}
