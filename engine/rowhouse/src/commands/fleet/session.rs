//! Publications to one store by one author.

use std::time::Duration;

use jiff::Timestamp;

use bucket::run;
use bucket::store::probe::probe;
use bucket::store::{Bucket, Change, Uploads, random_nonce};
use fleet::key::ObjectKey;
use fleet::pointer::Pointer;
use fleet::publish::{Edit, Outcome, Publication};

use super::{Unavailable, author, block_on, failure, open, refusal};
use crate::cli::fleet::AuthorFlag;

/// The end of a publication.
#[derive(Debug)]
pub(super) enum Ending {
    /// The pointer that was made.
    Published(Box<Pointer>),
    /// The pointer that was made, with unchanged content that was uploaded again.
    Repaired(Box<Pointer>),
    /// The current pointer.
    Unchanged(Box<Pointer>),
    /// The pointer of the publisher that was first.
    Conflict(Box<Pointer>),
    /// The reason that there is no such version.
    Refused(String),
}

/// One publication after another, to the same store by the same author.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) bucket: Bucket,
    author: String,
    expect: Option<u64>,
    is_probed: bool,
    /// The time for which the store may leave requests without an answer.
    pub(super) max_silence: Duration,
    /// The tenants that were unchanged, with their pointers.
    unchanged: Vec<(String, Pointer)>,
}

impl Session {
    /// Opens the store.
    pub(super) fn open(
        store: &str,
        author_flag: &AuthorFlag,
        expect: Option<u64>,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            bucket: open(store)?,
            author: author(author_flag),
            expect,
            is_probed: false,
            max_silence: run::MAX_SILENCE,
            unchanged: Vec::new(),
        })
    }

    /// Probes a store to which nothing was published yet. Later publications rely on the first.
    pub(super) fn refuse_unfit_store(&mut self) -> anyhow::Result<()> {
        if self.is_probed {
            return Ok(());
        }
        let head = block_on(self.bucket.get(&ObjectKey::head(), None))?;
        if head.map_err(|error| failure(&self.bucket, error))? == Change::Missing {
            let probed = block_on(probe(&self.bucket, &random_nonce()))?;
            probed.map_err(|error| refusal(&self.bucket, error))?;
        }
        self.is_probed = true;
        Ok(())
    }

    /// Returns the pointer of a tenant, or `None` if the tenant was never published.
    pub(super) fn current(&self, tenant: &str) -> anyhow::Result<Option<Pointer>> {
        let key = ObjectKey::pointer(tenant);
        let current = block_on(self.bucket.get(&key, None))?;
        match current.map_err(|error| failure(&self.bucket, error))? {
            Change::Object(object) => match Pointer::of_bytes(&object.body) {
                Some(pointer) => Ok(Some(pointer)),
                None => Err(self.damaged(&key)),
            },
            Change::None | Change::Missing => Ok(None),
        }
    }

    /// Changes a tenant. `uploads` has the content of a publication.
    pub(super) fn change(
        &mut self,
        tenant: &str,
        edit: Edit,
        uploads: &Uploads,
        addresses: Vec<String>,
    ) -> anyhow::Result<Ending> {
        let publication = Publication {
            tenant: tenant.to_owned(),
            edit,
            addresses,
            expected: self.expect,
            at: now(),
            author: self.author.clone(),
        };
        let (bucket, limit) = (&self.bucket, self.max_silence);
        let ended = run::publish_within(bucket, publication, uploads, random_nonce(), limit);
        let outcome = block_on(ended)?.map_err(|error| {
            let hint = "the change may have happened or not; running the command again is safe";
            failure(&self.bucket, error).context(format!("cannot publish `{tenant}`; {hint}"))
        })?;
        Ok(match outcome {
            Outcome::Published(pointer) => Ending::Published(pointer),
            Outcome::Repaired(pointer) => Ending::Repaired(pointer),
            Outcome::Unchanged(pointer) => {
                self.unchanged.push((tenant.to_owned(), (*pointer).clone()));
                Ending::Unchanged(pointer)
            }
            Outcome::Conflict(pointer) => Ending::Conflict(pointer),
            Outcome::NoVersion(Some(version)) => Ending::Refused(no_version(tenant, version)),
            Outcome::NoVersion(None) => {
                Ending::Refused(format!("`{tenant}` has no earlier version"))
            }
            Outcome::NoContent(version) => Ending::Refused(format!(
                "version {version} of `{tenant}` has no content: it was withdrawn, or its content was collected; choose another one that `rowhouse releases {tenant}` lists"
            )),
            Outcome::Damaged(key) => return Err(self.damaged(&key)),
            Outcome::Unavailable => {
                let reason = format!(
                    "cannot publish `{tenant}`: too many requests had no answer: run the command again, which is safe"
                );
                return Err(Unavailable(reason).into());
            }
        })
    }

    /// Makes sure that replicas learn of the versions of the unchanged tenants, whose publishers may have been killed.
    pub(super) fn announce_unchanged(&mut self) -> anyhow::Result<()> {
        let unchanged = std::mem::take(&mut self.unchanged);
        block_on(run::announce_unchanged(&self.bucket, &unchanged, now()))
    }

    fn damaged(&self, key: &ObjectKey) -> anyhow::Error {
        anyhow::anyhow!(
            "`{}`: the object `{key}` is not of this version of the program: run `rowhouse store check`",
            self.bucket.address()
        )
    }
}

/// Returns the error about a tenant that was never published.
pub(super) fn never_published(tenant: &str, bucket: &Bucket) -> String {
    let address = bucket.address();
    format!("error: `{tenant}` was never published to `{address}`")
}

/// Returns the error about a version that does not exist.
pub(super) fn no_version(tenant: &str, version: u64) -> String {
    format!(
        "`{tenant}` has no version {version}: choose one that `rowhouse releases {tenant}` lists"
    )
}

/// Returns the time, in milliseconds since 1970.
fn now() -> u64 {
    u64::try_from(Timestamp::now().as_millisecond()).unwrap_or_default()
}
