//! Sends requests to the object store, and names the cause of a failure.
//!
//! - [`credentials`] refuses a start without credentials.
//! - [`probe`] refuses a store that does not honour conditional writes.
//! - [`metrics`] counts the requests.

pub mod credentials;
pub mod metrics;
pub mod probe;

use std::collections::BTreeMap;
use std::env;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    ClientOptions, Error, GetOptions, GetResult, ObjectMeta, ObjectStore, ObjectStoreExt,
    ObjectStoreScheme, PutMode, PutPayload, RetryConfig, UpdateVersion,
};
use url::Url;

use fleet::exchange::{Answer, ObjectTag, Request, StoreTime, StoredObject};
use fleet::key::{ContentHash, Nonce, ObjectKey};

use crate::packed::{MAX_CONTENT_BYTES, decompress};
use crate::store::metrics::{RequestKind, RequestResult, StoreMetrics};

/// The time after which a request that the store does not answer fails.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The time for which a failed request is repeated. Callers have their own answer to a store that is down.
const RETRY_TIMEOUT: Duration = Duration::from_secs(20);

/// The number of times that a failed request is repeated.
const MAX_RETRIES: usize = 4;

/// The character between an `ETag` and a generation. No header field has it.
const TAG_SEPARATOR: char = '\n';

/// The beginnings of the names of variables, in lower case.
const SERVICES: [&str; 3] = ["aws_", "azure_", "google_"];

/// Content objects by the hash of their content: what a [`Request::Upload`] sends, and with whose size a [`Request::Verify`] compares.
pub type Uploads = BTreeMap<ContentHash, Bytes>;

/// An address that names no usable store.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// The text is no URL.
    #[error("'{address}' is no address of a bucket: {reason}")]
    Syntax {
        /// The text.
        address: String,
        /// The reason.
        reason: url::ParseError,
    },
    /// The program has no client for the service.
    #[error("'{0}' is no address of a bucket")]
    Scheme(String),
    /// Neither the environment nor the machine has credentials.
    #[error("no credentials for the bucket '{address}'")]
    NoCredentials {
        /// The address.
        address: String,
        /// The advice to the operator.
        hint: &'static str,
    },
    /// The client of the service refuses its settings.
    #[error("cannot use the bucket '{address}': {source}")]
    Settings {
        /// The address.
        address: String,
        /// The reason of the client.
        source: Error,
    },
}

impl AddressError {
    /// Returns the advice to the operator.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Syntax { .. } | Self::Scheme(_) => {
                "name the bucket as s3://bucket/prefix, gs://bucket/prefix or az://container/prefix"
            }
            Self::NoCredentials { hint, .. } => hint,
            Self::Settings { .. } => {
                "set the credentials in the environment, such as AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION"
            }
        }
    }
}

/// A request that the store has not answered, or has refused for a reason other than its condition.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The credentials are missing, wrong, expired or not sufficient.
    #[error("the store refuses the credentials")]
    Denied(#[source] Error),
    /// The bucket does not exist.
    #[error("the bucket does not exist")]
    NoBucket(#[source] Error),
    /// The store cannot do what was asked.
    #[error("the store has no {operation}")]
    Unsupported {
        /// The operation of the request.
        operation: String,
        /// The reason of the client.
        #[source]
        source: Error,
    },
    /// The store was not reached, or failed. The request may have had its effect, or may still have it.
    #[error("the store did not answer")]
    Unavailable(#[source] Error),
}

impl StoreError {
    /// Returns whether the same request will fail again until an operator changes the settings.
    #[must_use]
    pub const fn is_permanent(&self) -> bool {
        matches!(
            self,
            Self::Denied(_) | Self::NoBucket(_) | Self::Unsupported { .. }
        )
    }

    /// Returns the result as metrics count it.
    const fn result(&self) -> RequestResult {
        match self {
            Self::Denied(_) => RequestResult::Denied,
            _ => RequestResult::Failed,
        }
    }

    /// Returns the advice to the operator.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Denied(_) => {
                "check the credentials in the environment, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and their rights to read, write, list and delete"
            }
            Self::NoBucket(_) => "create the bucket, or correct its name in `--store`",
            Self::Unsupported { .. } => "use a store with conditional writes",
            Self::Unavailable(_) => {
                "check that the store runs and that AWS_ENDPOINT_URL names it; an `http://` endpoint also needs AWS_ALLOW_HTTP=true"
            }
        }
    }
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        match error {
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => Self::Denied(error),
            // Requests for one object do not pass this error on when the object is missing.
            Error::NotFound { .. } => Self::NoBucket(error),
            Error::NotSupported { .. } => Self::Unsupported {
                operation: "such operation".to_owned(),
                source: error,
            },
            Error::NotImplemented { ref operation, .. } => Self::Unsupported {
                operation: operation.clone(),
                source: error,
            },
            _ => Self::Unavailable(error),
        }
    }
}

/// The answer to a question whether an object has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The object still has the known tag.
    None,
    /// The object as it is now.
    Object(StoredObject),
    /// The object does not exist.
    Missing,
}

/// A listed object. Some stores list no tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedObject {
    /// The name after the prefix of the list.
    pub name: String,
    /// The version.
    pub tag: Option<ObjectTag>,
}

/// An object store, and the prefix of all names in it.
#[derive(Clone)]
pub struct Bucket {
    objects: Arc<dyn ObjectStore>,
    prefix: Path,
    address: String,
    metrics: Arc<StoreMetrics>,
}

impl Bucket {
    /// Opens the bucket with this address, such as `s3://bucket/prefix`. Sends no request.
    ///
    /// The environment has the credentials and settings, under the names that the tools of the service use (`AWS_ENDPOINT_URL`, `GOOGLE_SERVICE_ACCOUNT`, `AZURE_STORAGE_ACCOUNT_NAME`, …).
    ///
    /// # Errors
    /// Returns an error if the address or the settings are not usable.
    pub fn open(address: &str) -> Result<Self, AddressError> {
        let variables = env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self::open_with(address, variables)
    }

    /// Opens the bucket with this address. `variables` replaces the environment.
    ///
    /// # Errors
    /// Returns an error if the address or the settings are not usable.
    pub fn open_with(
        address: &str,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, AddressError> {
        let url = Url::parse(address).map_err(|reason| AddressError::Syntax {
            address: address.to_owned(),
            reason,
        })?;
        let settings = |source| AddressError::Settings {
            address: address.to_owned(),
            source,
        };
        let (scheme, prefix) =
            ObjectStoreScheme::parse(&url).map_err(|_| AddressError::Scheme(address.to_owned()))?;
        let retry = RetryConfig {
            max_retries: MAX_RETRIES,
            retry_timeout: RETRY_TIMEOUT,
            ..RetryConfig::default()
        };
        // The builders also know names without a service, such as `BUCKET` and `TOKEN`, which other programs use.
        let variables = variables
            .into_iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value))
            .filter(|(name, _)| SERVICES.iter().any(|service| name.starts_with(service)));
        let client = ClientOptions::new().with_timeout(REQUEST_TIMEOUT);
        // The builders ignore variables that they do not know.
        macro_rules! build {
            ($builder:ty) => {{
                let builder = <$builder>::new()
                    .with_url(url.as_str())
                    .with_client_options(client)
                    .with_retry(retry);
                let builder =
                    variables.fold(builder, |builder, (name, value)| match name.parse() {
                        Ok(key) => builder.with_config(key, value),
                        Err(_) => builder,
                    });
                Arc::new(builder.build().map_err(settings)?) as Arc<dyn ObjectStore>
            }};
        }
        let objects = match scheme {
            ObjectStoreScheme::AmazonS3 => build!(object_store::aws::AmazonS3Builder),
            ObjectStoreScheme::GoogleCloudStorage => {
                build!(object_store::gcp::GoogleCloudStorageBuilder)
            }
            ObjectStoreScheme::MicrosoftAzure => {
                build!(object_store::azure::MicrosoftAzureBuilder)
            }
            _ => return Err(AddressError::Scheme(address.to_owned())),
        };
        Ok(Self {
            metrics: StoreMetrics::of_process(),
            ..Self::new(objects, prefix, address)
        })
    }

    /// Returns an empty store in memory.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::new(Arc::new(InMemory::new()), Path::default(), "memory:")
    }

    fn new(objects: Arc<dyn ObjectStore>, prefix: Path, address: &str) -> Self {
        Self {
            objects,
            prefix,
            address: address.trim_end_matches('/').to_owned(),
            metrics: Arc::default(),
        }
    }

    /// Returns the address, such as `s3://bucket/prefix`.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the counts of the requests.
    #[must_use]
    pub fn metrics(&self) -> &StoreMetrics {
        &self.metrics
    }

    /// Sends a request. `uploads` has the content of a [`Request::Upload`] or a [`Request::Verify`].
    ///
    /// Never returns [`Answer::Unknown`]: the error says why the answer is not known.
    ///
    /// # Errors
    /// Returns an error if the store did not answer, refuses the credentials, or cannot do what was asked.
    pub async fn send(&self, request: &Request, uploads: &Uploads) -> Result<Answer, StoreError> {
        let kind = match request {
            Request::Get(_) | Request::Verify(..) => RequestKind::Read,
            Request::List(_) | Request::ListBefore(..) => RequestKind::List,
            Request::Create(..) | Request::Upload(..) | Request::Swap(..) => RequestKind::Write,
            Request::Delete(_) => RequestKind::Delete,
        };
        let begun = Instant::now();
        let answer = self.answer(request, uploads).await;
        let result = match &answer {
            Ok(Answer::Missing) => RequestResult::Missing,
            Ok(Answer::Refused) => RequestResult::Refused,
            Ok(_) => RequestResult::Done,
            Err(error) => error.result(),
        };
        self.metrics.record(kind, result, begun.elapsed());
        answer
    }

    async fn answer(&self, request: &Request, uploads: &Uploads) -> Result<Answer, StoreError> {
        match request {
            Request::Get(key) => match self.read(key, None).await? {
                Change::Object(object) => Ok(Answer::Object(object)),
                Change::None | Change::Missing => Ok(Answer::Missing),
            },
            Request::Verify(key, hash) => self.verify(key, hash, uploads.get(hash)).await,
            Request::List(prefix) => self.list(prefix, None).await.map(Answer::Listed),
            Request::ListBefore(prefix, time) => {
                self.list(prefix, Some(*time)).await.map(Answer::Listed)
            }
            Request::Create(key, body) => self.put(key, body.clone(), PutMode::Create).await,
            Request::Upload(key, hash) => {
                let body = uploads.get(hash).cloned().unwrap_or_default();
                self.put(key, body, PutMode::Create).await
            }
            Request::Swap(key, tag, body) => {
                let (etag, generation) = parts(tag);
                let version = UpdateVersion {
                    e_tag: Some(etag.to_owned()),
                    version: generation.map(ToOwned::to_owned),
                };
                self.put(key, body.clone(), PutMode::Update(version)).await
            }
            Request::Delete(key) => match self.objects.delete(&self.path(key.as_str())).await {
                Ok(()) | Err(Error::NotFound { .. }) => Ok(Answer::Done),
                Err(error) => Err(error.into()),
            },
        }
    }

    /// Reads an object, unless it still has the known tag (`If-None-Match`).
    ///
    /// # Errors
    /// Returns an error if the store did not answer or refuses the credentials.
    pub async fn get(
        &self,
        key: &ObjectKey,
        known: Option<&ObjectTag>,
    ) -> Result<Change, StoreError> {
        let begun = Instant::now();
        let change = self.read(key, known).await;
        let result = match &change {
            Ok(Change::None) => RequestResult::Unchanged,
            Ok(Change::Missing) => RequestResult::Missing,
            Ok(Change::Object(_)) => RequestResult::Done,
            Err(error) => error.result(),
        };
        self.metrics
            .record(RequestKind::Read, result, begun.elapsed());
        change
    }

    async fn read(&self, key: &ObjectKey, known: Option<&ObjectTag>) -> Result<Change, StoreError> {
        let options = GetOptions {
            if_none_match: known.map(|tag| parts(tag).0.to_owned()),
            ..GetOptions::default()
        };
        match self
            .objects
            .get_opts(&self.path(key.as_str()), options)
            .await
        {
            Ok(result) => {
                let object = stored_object(result).await?;
                self.metrics.record_received(object.body.len());
                Ok(Change::Object(object))
            }
            Err(Error::NotFound { .. }) => Ok(Change::Missing),
            Err(Error::NotModified { .. }) => Ok(Change::None),
            Err(error) => Err(error.into()),
        }
    }

    /// Looks whether an object has this content. Reads the object only if it has another size than the object to upload: another version of the compressor makes objects of other sizes.
    async fn verify(
        &self,
        key: &ObjectKey,
        hash: &ContentHash,
        upload: Option<&Bytes>,
    ) -> Result<Answer, StoreError> {
        let size = match self.objects.head(&self.path(key.as_str())).await {
            Ok(found) => found.size,
            Err(Error::NotFound { .. }) => return Ok(Answer::Missing),
            Err(error) => return Err(error.into()),
        };
        let has_size = |upload: &Bytes| u64::try_from(upload.len()) == Ok(size);
        if upload.is_none_or(has_size) {
            return Ok(Answer::Done);
        }
        Ok(match self.get(key, None).await? {
            Change::Object(object) if decompress(&object.body, hash, MAX_CONTENT_BYTES).is_ok() => {
                Answer::Done
            }
            _ => Answer::Missing,
        })
    }

    /// Looks for an object, whose content is not read yet.
    pub(crate) async fn open_object(
        &self,
        key: &ObjectKey,
    ) -> Result<Option<GetResult>, StoreError> {
        let begun = Instant::now();
        let opened = match self.objects.get(&self.path(key.as_str())).await {
            Ok(result) => Ok(Some(result)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(StoreError::from(error)),
        };
        let result = match &opened {
            Ok(Some(_)) => RequestResult::Done,
            Ok(None) => RequestResult::Missing,
            Err(error) => error.result(),
        };
        self.metrics
            .record(RequestKind::Read, result, begun.elapsed());
        opened
    }

    /// Reads the first `length` bytes of an object.
    pub(crate) async fn read_start(
        &self,
        key: &ObjectKey,
        length: u64,
    ) -> Result<Option<Bytes>, StoreError> {
        let begun = Instant::now();
        let options = GetOptions {
            range: Some((0..length).into()),
            ..GetOptions::default()
        };
        let path = self.path(key.as_str());
        let read = async { self.objects.get_opts(&path, options).await?.bytes().await };
        let start = match read.await {
            Ok(start) => Ok(Some(start)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(StoreError::from(error)),
        };
        let result = match &start {
            Ok(Some(_)) => RequestResult::Done,
            Ok(None) => RequestResult::Missing,
            Err(error) => error.result(),
        };
        self.metrics
            .record(RequestKind::Read, result, begun.elapsed());
        start
    }

    async fn put(&self, key: &ObjectKey, body: Bytes, mode: PutMode) -> Result<Answer, StoreError> {
        let path = self.path(key.as_str());
        self.metrics.record_sent(body.len());
        let put = self
            .objects
            .put_opts(&path, PutPayload::from(body), mode.into());
        match put.await {
            Ok(_) => Ok(Answer::Done),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(Answer::Refused),
            Err(error) => Err(error.into()),
        }
    }

    /// Lists the names that begin with a prefix, which ends at a slash: of all objects, or of those last written before a time.
    async fn list(
        &self,
        prefix: &str,
        before: Option<StoreTime>,
    ) -> Result<Vec<ObjectKey>, StoreError> {
        let path = self.path(prefix.trim_end_matches('/'));
        let listed: Vec<_> = self.objects.list(Some(&path)).try_collect().await?;
        let names = listed.iter().filter_map(|object| {
            let modified = store_time(object.last_modified.timestamp_millis());
            if before.is_some_and(|before| modified >= before) {
                return None;
            }
            let mut parts = object.location.prefix_match(&self.prefix)?;
            let name = parts.next()?.as_ref().to_owned();
            Some(parts.fold(name, |name, part| format!("{name}/{}", part.as_ref())))
        });
        let mut names: Vec<_> = names.map(|name| ObjectKey::new(&name)).collect();
        names.sort();
        Ok(names)
    }

    /// Lists the objects whose names begin with a prefix, which ends at a slash, in the order of their names.
    ///
    /// # Errors
    /// Returns an error if the store did not answer or refuses the credentials.
    pub async fn list_tagged(&self, prefix: &str) -> Result<Vec<ListedObject>, StoreError> {
        let begun = Instant::now();
        let path = self.path(prefix.trim_end_matches('/'));
        let objects = self.objects.list(Some(&path));
        // A million objects with all that the store tells about them take much memory.
        let objects = objects.map_ok(|object| {
            let mut parts = object.location.prefix_match(&path)?;
            let name = parts.next()?.as_ref().to_owned();
            Some(ListedObject {
                name: parts.fold(name, |name, part| format!("{name}/{}", part.as_ref())),
                tag: object.e_tag.map(ObjectTag),
            })
        });
        let listed: Result<Vec<_>, Error> = objects.try_collect().await;
        let listed = listed.map_err(StoreError::from);
        let result = listed
            .as_ref()
            .map_or_else(StoreError::result, |_| RequestResult::Done);
        self.metrics
            .record(RequestKind::List, result, begun.elapsed());
        let mut listed: Vec<ListedObject> = listed?.into_iter().flatten().collect();
        listed.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(listed)
    }

    fn path(&self, name: &str) -> Path {
        let parts = name.split('/').filter(|part| !part.is_empty());
        parts.fold(self.prefix.clone(), |path, part| path.join(part))
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Bucket")
            .field(&self.address)
            .finish()
    }
}

/// Returns an error with all its causes in a line.
#[must_use]
pub fn with_causes(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        // Some errors have the message of their cause in their own.
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        cause = error.source();
    }
    text.replace('\n', " ")
}

/// Returns a nonce of 128 random bits.
#[must_use]
pub fn random_nonce() -> Nonce {
    let mut bytes = [0; 16];
    // Without random numbers there is no TLS either.
    let _ = aws_lc_rs::rand::fill(&mut bytes);
    Nonce(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

async fn stored_object(result: GetResult) -> Result<StoredObject, StoreError> {
    let tag = object_tag(&result.meta);
    let modified = store_time(result.meta.last_modified.timestamp_millis());
    let body = result.bytes().await?;
    Ok(StoredObject {
        body,
        tag,
        modified,
    })
}

/// Returns the tag of an object: its `ETag`, and its generation in stores that number the versions of an object. Google Cloud Storage compares generations in a swap, and all other stores compare tags.
fn object_tag(object: &ObjectMeta) -> ObjectTag {
    let etag = object.e_tag.clone().unwrap_or_default();
    ObjectTag(match &object.version {
        Some(generation) => format!("{etag}{TAG_SEPARATOR}{generation}"),
        None => etag,
    })
}

/// Returns the `ETag` of a tag, and the generation.
fn parts(tag: &ObjectTag) -> (&str, Option<&str>) {
    match tag.0.split_once(TAG_SEPARATOR) {
        Some((etag, generation)) => (etag, Some(generation)),
        None => (&tag.0, None),
    }
}

/// Returns a time of the store, which may be damaged.
fn store_time(milliseconds: i64) -> StoreTime {
    StoreTime::try_from(milliseconds).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new(name)
    }

    async fn send(bucket: &Bucket, request: Request) -> Answer {
        let sent = bucket.send(&request, &Uploads::new()).await;
        sent.expect("the store in memory answers")
    }

    async fn stored(bucket: &Bucket, name: &str) -> StoredObject {
        match send(bucket, Request::Get(key(name))).await {
            Answer::Object(object) => object,
            answer => panic!("{name}: {answer:?}"),
        }
    }

    #[tokio::test]
    async fn second_create_and_swap_with_an_old_tag_are_refused() {
        let bucket = Bucket::in_memory();
        let create = |body: &'static str| Request::Create(key("v1/head"), Bytes::from(body));
        assert_eq!(send(&bucket, create("one")).await, Answer::Done);
        assert_eq!(send(&bucket, create("two")).await, Answer::Refused);
        let first = stored(&bucket, "v1/head").await;
        assert_eq!(first.body, "one");
        let swap = |body: &'static str| {
            Request::Swap(key("v1/head"), first.tag.clone(), Bytes::from(body))
        };
        assert_eq!(send(&bucket, swap("three")).await, Answer::Done);
        assert_eq!(send(&bucket, swap("four")).await, Answer::Refused);
        assert_eq!(stored(&bucket, "v1/head").await.body, "three");
    }

    #[tokio::test]
    async fn unchanged_object_is_not_read_again() {
        let bucket = Bucket::in_memory();
        let head = key("v1/head");
        let missing = bucket.get(&head, None).await.expect("answered");
        assert_eq!(missing, Change::Missing);
        send(&bucket, Request::Create(head.clone(), Bytes::from("one"))).await;
        let object = stored(&bucket, "v1/head").await;
        let same = bucket
            .get(&head, Some(&object.tag))
            .await
            .expect("answered");
        assert_eq!(same, Change::None);
    }

    #[tokio::test]
    async fn each_request_is_counted_once_with_its_result_and_bytes() {
        let bucket = Bucket::in_memory();
        let create = || Request::Create(key("v1/head"), Bytes::from("four"));
        let old = ObjectTag("old".to_owned());
        for request in [
            Request::Get(key("v1/head")),
            create(),
            create(),
            Request::Get(key("v1/head")),
            Request::Verify(key("v1/head"), ContentHash(String::new())),
            Request::List("v1/".to_owned()),
            Request::Swap(key("v1/head"), old, Bytes::new()),
            Request::Delete(key("v1/head")),
        ] {
            send(&bucket, request).await;
        }
        let counts = bucket.metrics().counts();
        assert_eq!(
            counts.requests,
            [
                [2, 0, 1, 0, 0, 0],
                [1, 0, 0, 0, 0, 0],
                [1, 0, 0, 2, 0, 0],
                [1, 0, 0, 0, 0, 0]
            ]
        );
        assert_eq!(counts.latency.iter().sum::<u64>(), 8);
        // Two creates and a swap without content; one object was read.
        assert_eq!((counts.sent, counts.received), (8, 4));
    }

    #[tokio::test]
    async fn list_names_objects_below_the_prefix() {
        let bucket = Bucket {
            prefix: Path::from("sites/live"),
            ..Bucket::in_memory()
        };
        for name in [
            "v1/tenants/mill",
            "v1/tenants/corner",
            "v1/tenantsfile",
            "v1/history/mill/1",
        ] {
            send(&bucket, Request::Create(key(name), Bytes::new())).await;
        }
        let listed = send(&bucket, Request::List("v1/tenants/".to_owned())).await;
        let names = ["v1/tenants/corner", "v1/tenants/mill"].map(key);
        assert_eq!(listed, Answer::Listed(names.to_vec()));
    }

    #[tokio::test]
    async fn tag_of_a_listed_object_is_the_tag_of_its_answer() {
        let bucket = Bucket {
            prefix: Path::from("sites/live"),
            ..Bucket::in_memory()
        };
        for name in ["v1/tenants/mill", "v1/tenants/corner", "v1/tenantsfile"] {
            send(&bucket, Request::Create(key(name), Bytes::new())).await;
        }
        let listed = bucket.list_tagged("v1/tenants/").await.expect("answered");
        let mut expected = Vec::new();
        for name in ["corner", "mill"] {
            let object = stored(&bucket, &format!("v1/tenants/{name}")).await;
            expected.push(ListedObject {
                name: name.to_owned(),
                tag: Some(object.tag),
            });
        }
        assert_eq!(listed, expected);
        let quoted = ObjectTag("\"5d41402a\"".to_owned());
        assert_eq!(quoted.opaque(), ObjectTag("5d41402a".to_owned()).opaque());
    }

    #[test]
    fn tag_has_the_generation_of_stores_that_number_versions() {
        let mut object = ObjectMeta {
            location: Path::from("v1/head"),
            last_modified: Default::default(),
            size: 0,
            e_tag: Some("\"abc\"".to_owned()),
            version: None,
        };
        assert_eq!(parts(&object_tag(&object)), ("\"abc\"", None));
        object.version = Some("17".to_owned());
        assert_eq!(parts(&object_tag(&object)), ("\"abc\"", Some("17")));
        object.e_tag = None;
        assert_eq!(parts(&object_tag(&object)), ("", Some("17")));
    }

    #[test]
    fn address_without_a_known_service_is_refused_with_a_hint() {
        for address in ["bucket/prefix", "ftp://bucket/prefix", "file:///srv/bucket"] {
            let error = Bucket::open(address).expect_err(address);
            assert!(error.to_string().contains(address), "{error}");
            assert!(error.hint().contains("s3://"), "{error}");
        }
    }
}
