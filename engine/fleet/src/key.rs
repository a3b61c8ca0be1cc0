//! The names of objects in the store.
//!
//! **Invariant:** a content object's name ends in the nonce of its upload, so that no name is used again after its object was deleted. A delete that arrives late hits nothing.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The name of an object in the store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ObjectKey(String);

/// A number that no other machine has drawn: 128 random bits in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nonce(pub String);

/// The SHA-256 of packed content, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ContentHash(pub String);

/// The prefix of all pointers.
pub const POINTERS: &str = "v1/tenants/";

/// The name under which the folder of themes is published, as if it were one tenant. No tenant has such an id.
pub const THEMES: &str = "@themes";

/// The name under which `deployment.yaml` is published: a folder with this one file. No tenant has such an id.
pub const DEPLOYMENT: &str = "@deployment";

/// The names of what all tenants share.
pub const SHARED: [&str; 2] = [THEMES, DEPLOYMENT];

/// The prefix of all replaced pointers.
pub const HISTORY: &str = "v1/history/";

/// The prefix of all content objects.
pub const CONTENT: &str = "v1/content/";

/// The prefix of the heartbeats of all replicas.
pub const REPLICAS: &str = "v1/replicas/";

/// The prefix of all rendered releases. They are a cache: any of them may be absent.
pub const RELEASES: &str = "v1/releases/";

/// The prefix of the leases of replicas that render.
pub const RENDER_LEASES: &str = "v1/leases/render/";

impl ObjectKey {
    /// Returns the name of a listed object.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// Returns the name of a tenant's pointer.
    #[must_use]
    pub fn pointer(tenant: &str) -> Self {
        Self(format!("{POINTERS}{tenant}"))
    }

    /// Returns the name of a replaced pointer of a tenant.
    #[must_use]
    pub fn history(tenant: &str, version: u64) -> Self {
        Self(format!("{HISTORY}{tenant}/{version}"))
    }

    /// Returns the tenant and the version of a replaced pointer.
    #[must_use]
    pub fn version(&self) -> Option<(&str, u64)> {
        let (tenant, version) = self.0.strip_prefix(HISTORY)?.split_once('/')?;
        Some((tenant, version.parse().ok()?))
    }

    /// Returns the name of content that is uploaded under this nonce.
    #[must_use]
    pub fn content(hash: &ContentHash, nonce: &Nonce) -> Self {
        Self(format!("{}{}", Self::contents(hash), nonce.0))
    }

    /// Returns the prefix of all objects with this content.
    #[must_use]
    pub fn contents(hash: &ContentHash) -> String {
        format!("{CONTENT}{}/", hash.0)
    }

    /// Returns the name of a rendered release. `inputs` is the digest of its inputs, in hexadecimal.
    #[must_use]
    pub fn release(inputs: &str) -> Self {
        Self(format!("{RELEASES}{inputs}"))
    }

    /// Returns the name of the lease of the replica that renders a release.
    #[must_use]
    pub fn render_lease(inputs: &str) -> Self {
        Self(format!("{RENDER_LEASES}{inputs}"))
    }

    /// Returns the name of the lease of the replica that makes the best content encodings of a release.
    #[must_use]
    pub fn encodings_lease(inputs: &str) -> Self {
        Self(format!("{RENDER_LEASES}{inputs}.encodings"))
    }

    /// Returns the name of the [head](crate::head).
    #[must_use]
    pub fn head() -> Self {
        Self::new("v1/head")
    }

    /// Returns the name of the list of garbage.
    #[must_use]
    pub fn garbage() -> Self {
        Self::new("v1/garbage")
    }

    /// Returns the name of a replica's heartbeat.
    #[must_use]
    pub fn replica(id: &str) -> Self {
        Self(format!("{REPLICAS}{id}"))
    }

    /// Returns the name of the object that is written after each collection.
    #[must_use]
    pub fn collected() -> Self {
        Self::new("v1/collected")
    }

    /// Returns the name of a lease.
    #[must_use]
    pub fn lease(name: &str) -> Self {
        Self(format!("v1/leases/{name}"))
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
