//! The object store of a fleet: opens it, and sends the requests of the [`fleet`] protocol.
//!
//! | module | job |
//! |---|---|
//! | [`store`] | sends requests, and names the cause of a failure |
//! | [`credentials`] | refuses a start without credentials |
//! | [`probe`] | refuses a store that does not honour conditional writes |
//! | [`packed`] | the content objects of a folder |
//! | [`history`] | the versions of a tenant, and their files |
//! | [`run`] | publishes and collects: runs the state machines of the protocol |
//! | [`verify`] | reads every named object, and compares its hash |
//! | [`follow`] | learns which tenants have changed, and downloads their content |
//! | [`wake`] | downloads the content of a dormant tenant that a request needs |
//! | [`fetch`] | downloads the content of a version |
//! | `large_file` | writes a large file while it is downloaded |
//! | `known` | the tenants that a replica knows, awake or dormant |
//! | [`rows`] | the dormant tenants |
//! | [`cache`] | the content on the disk of a replica |
//! | [`lease`] | holds a lease |
//! | [`replicas`] | the heartbeats of replicas |
//! | [`metrics`] | counts the requests |
//! | [`releases`] | the rendered releases that replicas share |
//! | [`sealed`] | encrypts objects with private keys in them |
//! | [`sealed_store`] | reads and replaces such objects |
//!
//! The `object_store` crate talks to S3 and its likes, Google Cloud Storage and Azure Blob Storage. It reads the credentials from the environment variables of these services, and repeats failed requests.

pub mod cache;
pub mod credentials;
pub mod fetch;
pub mod follow;
pub mod history;
mod known;
mod large_file;
pub mod lease;
pub mod metrics;
pub mod packed;
pub mod probe;
pub mod releases;
pub mod replicas;
pub mod rows;
pub mod run;
pub mod sealed;
pub mod sealed_store;
pub mod store;
pub mod verify;
pub mod wake;
