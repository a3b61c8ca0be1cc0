//! Certificates in the bucket of a fleet.

use std::error::Error;
use std::future::{Future, pending};
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bucket::lease::Lease;
use bucket::sealed::sealed_store::{SealedError, SealedObjects};
use bucket::store::with_causes;
use fleet::key::ObjectKey;
use server::acme::{SharedFuture, SharedLease, SharedStore, SharedStoreError};
use tokio::runtime::{Builder, Handle};
use tokio::sync::Mutex;

/// The duration of a lease. The order of a certificate whose replica has ended waits for this long.
const LEASE: Duration = Duration::from_secs(60);

/// The certificates, the account and the challenges in a bucket.
#[derive(Debug)]
pub(crate) struct BucketCertificates {
    objects: Arc<SealedObjects>,
    /// The event loop of all requests to the bucket. Callers have event loops of their own, which end their connections with them.
    runtime: Handle,
}

impl BucketCertificates {
    /// Starts the event loop of the requests on a thread of its own.
    ///
    /// # Errors
    /// Returns an error if the operating system has no thread or event loop left.
    pub(crate) fn start(objects: SealedObjects) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        thread::Builder::new()
            .name("certificates".to_owned())
            .spawn(move || runtime.block_on(pending::<()>()))?;
        Ok(Self {
            objects: Arc::new(objects),
            runtime: handle,
        })
    }
}

/// Runs a request on the event loop of the bucket.
fn run<'s, T: Send + 'static, E: Error + Send + 'static>(
    runtime: &Handle,
    request: impl Future<Output = Result<T, E>> + Send + 'static,
) -> SharedFuture<'s, T> {
    let task = runtime.spawn(request);
    Box::pin(async move {
        match task.await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(SharedStoreError(with_causes(&error))),
            Err(error) => Err(SharedStoreError(error.to_string())),
        }
    })
}

fn object(name: &str) -> ObjectKey {
    ObjectKey::new(&format!("v1/{name}"))
}

impl SharedStore for BucketCertificates {
    fn get<'s>(&'s self, name: &'s str) -> SharedFuture<'s, Option<Vec<u8>>> {
        let (objects, name) = (Arc::clone(&self.objects), object(name));
        run(&self.runtime, async move { objects.get(&name).await })
    }

    fn put<'s>(&'s self, name: &'s str, bytes: Vec<u8>) -> SharedFuture<'s, ()> {
        let (objects, name) = (Arc::clone(&self.objects), object(name));
        run(
            &self.runtime,
            async move { objects.put(&name, &bytes).await },
        )
    }

    fn delete<'s>(&'s self, name: &'s str) -> SharedFuture<'s, ()> {
        let (objects, name) = (Arc::clone(&self.objects), object(name));
        run(&self.runtime, async move { objects.delete(&name).await })
    }

    fn lease(&self, name: &str) -> Box<dyn SharedLease> {
        let bucket = self.objects.bucket().clone();
        let lease = Lease::new(bucket, name, LEASE);
        Box::new(BucketLease {
            lease: Arc::new(Mutex::new(lease)),
            runtime: self.runtime.clone(),
        })
    }
}

/// A lease in a bucket.
struct BucketLease {
    lease: Arc<Mutex<Lease>>,
    runtime: Handle,
}

impl SharedLease for BucketLease {
    fn advance(&mut self) -> SharedFuture<'_, bool> {
        let lease = Arc::clone(&self.lease);
        run(&self.runtime, async move {
            let is_held = lease.lock().await.advance().await;
            is_held.map_err(SealedError::Store)
        })
    }
}
