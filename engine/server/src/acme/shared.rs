//! Shares the account, the certificates and the answers to challenges with the other replicas of a fleet.
//!
//! One replica orders the certificate of a host while it holds a lease, and the others take the certificate from the store. A lease only saves orders: without it, each replica would order the same certificate.
//!
//! **Invariant:** a certificate is in the store before its order counts as done, and the answer to a challenge before the CA is told.

use std::fmt::Debug;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, TryFutureExt as _};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error as ThisError;
use tokio::time::sleep;
use tracing::{debug, warn};

use super::issued_certificate::IssuedCertificate;
use super::plan::OrderFailure;
use crate::tls::certificate::Certificate;
use crate::tls::order_status::FailureKind;

/// Pause between two looks at a lease, and at the object that its holder stores.
const LEASE_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum time that a replica waits for another one. A lost holder's lease ends earlier.
const MAX_LEASE_WAIT: Duration = Duration::from_secs(180);
/// Pause before another attempt if the store fails.
const STORE_PAUSE: Duration = Duration::from_secs(15);
/// Attempts to store an issued certificate. Without it, other replicas order the certificate again.
const STORE_ATTEMPTS: u32 = 5;

/// The store failed, in its own words.
#[derive(Debug, Clone, PartialEq, Eq, ThisError)]
#[error("{0}")]
pub struct SharedStoreError(pub String);

/// The answer of the store, some time later.
pub type SharedFuture<'s, T> =
    Pin<Box<dyn Future<Output = Result<T, SharedStoreError>> + Send + 's>>;

/// The store that the replicas share. Keys of accounts and certificates are in it, so an implementation encrypts the bytes.
pub trait SharedStore: Debug + Send + Sync {
    /// Reads an object; `None` if it does not exist.
    fn get<'s>(&'s self, name: &'s str) -> SharedFuture<'s, Option<Vec<u8>>>;

    /// Creates or replaces an object.
    fn put<'s>(&'s self, name: &'s str, bytes: Vec<u8>) -> SharedFuture<'s, ()>;

    /// Deletes an object, which may be absent.
    fn delete<'s>(&'s self, name: &'s str) -> SharedFuture<'s, ()>;

    /// Returns the lease of this name, which this replica does not hold yet.
    fn lease(&self, name: &str) -> Box<dyn SharedLease>;
}

/// A lease that at most one replica holds. It ends some time after it is dropped.
pub trait SharedLease: Send {
    /// Takes the lease if it is free, and renews it in time if this replica holds it. Returns whether this replica holds it. Called every second or so.
    fn advance(&mut self) -> SharedFuture<'_, bool>;
}

/// The answer to an open challenge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SharedChallenge {
    /// The token (RFC 8555, section 8.3).
    pub(crate) token: String,
    /// The key authorization (RFC 8555, section 8.1).
    pub(crate) text: String,
}

/// The objects of one CA that replicas share.
#[derive(Debug, Clone)]
pub(crate) struct SharedCertificates {
    store: Arc<dyn SharedStore>,
    /// The name of the CA in names of objects.
    authority: Arc<str>,
}

/// The name of the object with the answer to a host's challenge. A host has at most one open challenge, because one replica orders its certificate.
pub(crate) fn challenge_name(host: &str) -> String {
    format!("acme/challenges/{host}")
}

/// Reads a shared object. A damaged object counts as missing.
pub(crate) async fn read<T: DeserializeOwned>(
    store: &dyn SharedStore,
    name: &str,
) -> Result<Option<T>, SharedStoreError> {
    let Some(bytes) = store.get(name).await? else {
        return Ok(None);
    };
    match serde_json::from_slice(&bytes) {
        Ok(value) => Ok(Some(value)),
        Err(error) => {
            warn!(name, %error, "object in the shared store is damaged; treating it as missing");
            Ok(None)
        }
    }
}

impl SharedCertificates {
    /// `authority` is the folder name of the CA.
    pub(super) fn new(store: Arc<dyn SharedStore>, authority: &str) -> Self {
        let authority = authority.into();
        Self { store, authority }
    }

    fn certificate_name(&self, host: &str) -> String {
        format!("acme/{}/certificates/{host}", self.authority)
    }

    fn account_name(&self) -> String {
        format!("acme/{}/account", self.authority)
    }

    /// Returns the valid certificate that another replica has stored for a host, unless it is the one in use.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn newer_certificate(
        &self,
        host: &str,
        used: Option<&Certificate>,
    ) -> Result<Option<IssuedCertificate>, OrderFailure> {
        let found: Option<IssuedCertificate> =
            read(&*self.store, &self.certificate_name(host)).await?;
        let found = found.filter(|found| {
            let read = Certificate::from_pem(found.chain.as_bytes(), found.key.as_bytes());
            read.is_ok_and(|read| {
                let is_valid = (read.not_before..=read.not_after).contains(&SystemTime::now());
                let is_newer = used.is_none_or(|used| used.not_after < read.not_after);
                is_valid && is_newer && read.covers(host)
            })
        });
        Ok(found.map(|found| IssuedCertificate {
            is_shared: true,
            ..found
        }))
    }

    /// Returns the certificate that another replica has stored for a host, or orders and stores it. `used` is the certificate in use.
    ///
    /// # Errors
    /// When the store fails, another replica takes too long, or the order fails.
    pub(super) async fn order_once(
        &self,
        host: &str,
        used: Option<&Certificate>,
        order: impl Future<Output = Result<IssuedCertificate, OrderFailure>>,
    ) -> Result<IssuedCertificate, OrderFailure> {
        let find = || self.newer_certificate(host, used).boxed();
        let make = async {
            let issued = order.await?;
            self.store_certificate(host, &issued).await;
            Ok(issued)
        };
        self.once(&format!("certificate-{host}"), find, make).await
    }

    /// Returns the persisted account that another replica has stored, or creates and stores it. A stored account that is not usable is replaced.
    ///
    /// # Errors
    /// When the store fails, another replica takes too long, or the account cannot be created.
    pub(super) async fn account_once(
        &self,
        is_usable: fn(&[u8]) -> bool,
        create: impl Future<Output = Result<Vec<u8>, OrderFailure>>,
    ) -> Result<Vec<u8>, OrderFailure> {
        let name = self.account_name();
        let find = || {
            let found = self.store.get(&name).err_into();
            found
                .map_ok(move |found| found.filter(|found| is_usable(found)))
                .boxed()
        };
        if let Some(found) = find().await? {
            return Ok(found);
        }
        let make = async {
            let account = create.await?;
            self.store.put(&name, account.clone()).await?;
            Ok(account)
        };
        self.once("acme-account", find, make).await
    }

    /// Deletes this account, unless another replica has replaced it already.
    pub(super) async fn delete_account(&self, account: &[u8]) {
        let name = self.account_name();
        let is_same = self.store.get(&name).await;
        if is_same.is_ok_and(|found| found.as_deref() == Some(account)) {
            let _ = self.store.delete(&name).await;
        }
    }

    /// Stores the answer to a challenge, so that the CA may ask any replica.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn open_challenge(
        &self,
        host: &str,
        challenge: &SharedChallenge,
    ) -> Result<(), OrderFailure> {
        let bytes = serde_json::to_vec(challenge).unwrap_or_default();
        Ok(self.store.put(&challenge_name(host), bytes).await?)
    }

    /// Deletes the answer to a challenge. An answer that stays is of no use: its order is over.
    pub(super) async fn close_challenge(&self, host: &str) {
        if let Err(error) = self.store.delete(&challenge_name(host)).await {
            debug!(host, %error, "answer to a challenge stays in the shared store");
        }
    }

    async fn store_certificate(&self, host: &str, issued: &IssuedCertificate) {
        let name = self.certificate_name(host);
        for attempt in 1..=STORE_ATTEMPTS {
            let bytes = serde_json::to_vec(issued).unwrap_or_default();
            match self.store.put(&name, bytes).await {
                Ok(()) => return,
                Err(error) if attempt == STORE_ATTEMPTS => {
                    warn!(host, %error, "storing a certificate failed; other replicas order their own");
                }
                Err(_) => sleep(LEASE_CHECK_INTERVAL * attempt).await,
            }
        }
    }

    /// Waits until a value is in the store, or makes it while this replica holds the lease.
    async fn once<'f, T>(
        &self,
        lease: &str,
        find: impl Fn() -> BoxFuture<'f, Result<Option<T>, OrderFailure>>,
        make: impl Future<Output = Result<T, OrderFailure>>,
    ) -> Result<T, OrderFailure> {
        let begin = Instant::now();
        let mut lease = self.store.lease(lease);
        loop {
            let is_holder = lease.advance().await?;
            // After the lease was taken: its former holder may have stored the value just before.
            if let Some(found) = find().await? {
                return Ok(found);
            }
            if is_holder {
                break;
            }
            if begin.elapsed() > MAX_LEASE_WAIT {
                let detail = "another replica has been ordering the certificate for minutes";
                return Err(storage(detail.to_owned()));
            }
            sleep(LEASE_CHECK_INTERVAL).await;
        }
        let mut make = pin!(make);
        loop {
            tokio::select! {
                made = &mut make => return made,
                () = sleep(LEASE_CHECK_INTERVAL) => {
                    // A lost lease does not end the order: a second order costs less than none.
                    let _ = lease.advance().await;
                }
            }
        }
    }
}

fn storage(detail: String) -> OrderFailure {
    OrderFailure {
        retry_after: Some(STORE_PAUSE),
        ..OrderFailure::new(FailureKind::Storage, detail)
    }
}

impl From<SharedStoreError> for OrderFailure {
    fn from(error: SharedStoreError) -> Self {
        storage(format!("the store of the fleet fails: {error}"))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

    use super::*;

    /// The time after which a lease of [`MemoryStore`] ends.
    const LEASE: Duration = Duration::from_secs(3);

    /// A store in memory.
    #[derive(Debug, Default)]
    pub(crate) struct MemoryStore {
        objects: Mutex<BTreeMap<String, Vec<u8>>>,
        leases: Arc<Mutex<BTreeMap<String, (usize, Instant)>>>,
        holders: AtomicUsize,
        pub(crate) reads: AtomicUsize,
        is_down: AtomicBool,
    }

    impl MemoryStore {
        fn answer<'s, T: Send + 's>(&self, answer: T) -> SharedFuture<'s, T> {
            let is_down = self.is_down.load(Relaxed);
            Box::pin(async move {
                tokio::task::yield_now().await;
                match is_down {
                    true => Err(SharedStoreError("connection refused".to_owned())),
                    false => Ok(answer),
                }
            })
        }

        fn objects(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
            self.objects.lock().expect("no test panics with the lock")
        }
    }

    impl SharedStore for MemoryStore {
        fn get<'s>(&'s self, name: &'s str) -> SharedFuture<'s, Option<Vec<u8>>> {
            self.reads.fetch_add(1, Relaxed);
            let found = self.objects().get(name).cloned();
            self.answer(found)
        }

        fn put<'s>(&'s self, name: &'s str, bytes: Vec<u8>) -> SharedFuture<'s, ()> {
            if !self.is_down.load(Relaxed) {
                self.objects().insert(name.to_owned(), bytes);
            }
            self.answer(())
        }

        fn delete<'s>(&'s self, name: &'s str) -> SharedFuture<'s, ()> {
            self.objects().remove(name);
            self.answer(())
        }

        fn lease(&self, name: &str) -> Box<dyn SharedLease> {
            Box::new(MemoryLease {
                name: name.to_owned(),
                holder: self.holders.fetch_add(1, Relaxed),
                leases: Arc::clone(&self.leases),
            })
        }
    }

    struct MemoryLease {
        name: String,
        holder: usize,
        leases: Arc<Mutex<BTreeMap<String, (usize, Instant)>>>,
    }

    impl SharedLease for MemoryLease {
        fn advance(&mut self) -> SharedFuture<'_, bool> {
            let mut leases = self.leases.lock().expect("no test panics with the lock");
            let held = leases
                .get(&self.name)
                .filter(|(_, until)| Instant::now() < *until);
            let is_free = held.is_none_or(|(holder, _)| *holder == self.holder);
            if is_free {
                let until = Instant::now() + LEASE;
                leases.insert(self.name.clone(), (self.holder, until));
            }
            Box::pin(async move { Ok(is_free) })
        }
    }

    /// Issues a certificate that is valid until January of this year.
    fn issued(year: i32) -> IssuedCertificate {
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut parameters =
            rcgen::CertificateParams::new(vec!["mill.example".to_owned()]).expect("a name");
        parameters.not_after = rcgen::date_time_ymd(year, 1, 1);
        let certificate = parameters.self_signed(&key).expect("a certificate");
        IssuedCertificate {
            chain: certificate.pem(),
            key: key.serialize_pem(),
            is_shared: false,
        }
    }

    fn certificate(issued: &IssuedCertificate) -> Certificate {
        Certificate::from_pem(issued.chain.as_bytes(), issued.key.as_bytes()).expect("valid")
    }

    fn replica(store: &Arc<MemoryStore>) -> SharedCertificates {
        let store: Arc<dyn SharedStore> = Arc::<MemoryStore>::clone(store);
        SharedCertificates::new(store, "ca.example")
    }

    #[tokio::test]
    async fn replicas_that_want_a_certificate_together_order_it_once() {
        let store = Arc::new(MemoryStore::default());
        let orders = AtomicUsize::new(0);
        let order = || async {
            orders.fetch_add(1, Relaxed);
            sleep(Duration::from_millis(100)).await;
            Ok(issued(2100))
        };
        let [one, two, three] = [(); 3].map(|()| replica(&store));
        let (one, two, three) = tokio::join!(
            one.order_once("mill.example", None, order()),
            two.order_once("mill.example", None, order()),
            three.order_once("mill.example", None, order()),
        );
        let all = [one, two, three].map(|issued| issued.expect("a certificate"));
        assert_eq!(orders.load(Relaxed), 1);
        assert!(all.iter().all(|issued| issued.chain == all[0].chain));
        let taken = all.iter().filter(|issued| issued.is_shared).count();
        assert_eq!(taken, 2);
    }

    #[tokio::test]
    async fn only_a_certificate_that_is_valid_longer_replaces_the_one_in_use() {
        let store = Arc::new(MemoryStore::default());
        let replica = replica(&store);
        let (old, new) = (issued(2090), issued(2100));
        replica.store_certificate("mill.example", &new).await;
        for (used, expected) in [
            (None, true),
            (Some(certificate(&old)), true),
            (Some(certificate(&new)), false),
        ] {
            let found = replica
                .newer_certificate("mill.example", used.as_ref())
                .await;
            let found = found.expect("the store answers");
            assert_eq!(found.is_some(), expected, "{used:?}");
        }
        // An operator's request orders a certificate although the store has the one in use.
        let order = async { Ok(issued(2110)) };
        let used = certificate(&new);
        let ordered = replica.order_once("mill.example", Some(&used), order).await;
        assert!(!ordered.expect("ordered").is_shared);
        // Expired, or for another host.
        for (host, year) in [("mill.example", 2000), ("other.example", 2100)] {
            replica.store_certificate(host, &issued(year)).await;
            let found = replica.newer_certificate(host, None).await;
            assert!(found.expect("the store answers").is_none(), "{host} {year}");
        }
    }

    #[tokio::test]
    async fn nothing_is_ordered_while_the_store_is_down() {
        let store = Arc::new(MemoryStore::default());
        store.is_down.store(true, Relaxed);
        let order = async { panic!("ordered") };
        let result = replica(&store)
            .order_once("mill.example", None, order)
            .await;
        let failure = result.expect_err("the store is down");
        assert_eq!(failure.kind, FailureKind::Storage);
        assert_eq!(failure.retry_after, Some(STORE_PAUSE));
        assert!(failure.detail.contains("connection refused"));
    }

    #[tokio::test]
    async fn lease_of_a_lost_replica_ends() {
        let store = Arc::new(MemoryStore::default());
        let lost = store.lease("certificate-mill.example").advance().await;
        assert_eq!(lost, Ok(true));
        let order = async { Ok(issued(2100)) };
        let ordered = replica(&store)
            .order_once("mill.example", None, order)
            .await;
        assert!(!ordered.expect("ordered").is_shared);
    }

    #[tokio::test]
    async fn account_is_created_once_and_a_damaged_one_is_replaced() {
        let store = Arc::new(MemoryStore::default());
        let is_usable: fn(&[u8]) -> bool = |bytes| bytes.starts_with(b"account");
        replica(&store)
            .store
            .put("acme/ca.example/account", b"noise".to_vec())
            .await
            .expect("up");
        let create = |name: &'static str| async move { Ok(name.as_bytes().to_vec()) };
        let (one, two) = (replica(&store), replica(&store));
        let (one, two) = tokio::join!(
            one.account_once(is_usable, create("account 1")),
            two.account_once(is_usable, create("account 2")),
        );
        let account = one.expect("created");
        assert!(account.starts_with(b"account"));
        assert_eq!(two.as_ref(), Ok(&account));
        // The CA has forgotten an account that another replica has replaced already.
        replica(&store).delete_account(b"account 0").await;
        assert!(store.objects().contains_key("acme/ca.example/account"));
        replica(&store).delete_account(&account).await;
        assert!(!store.objects().contains_key("acme/ca.example/account"));
    }
}
