//! The object store of a fleet: opens it, and sends the requests of the [`fleet`] protocol.
//!
//! | module | job |
//! |---|---|
//! | [`store`] | sends requests, names the cause of a failure, and refuses an unfit store |
//! | [`packed`] | the content objects of a folder |
//! | [`history`] | the versions of a tenant, and their files |
//! | [`run`] | publishes and collects: runs the state machines of the protocol |
//! | [`verify`] | reads every named object, and compares its hash |
//! | [`follow`] | learns which tenants have changed, and wakes dormant tenants |
//! | [`download`] | the content of versions on the disk of a replica |
//! | [`lease`] | holds a lease |
//! | [`replicas`] | the heartbeats of replicas |
//! | [`releases`] | the rendered releases that replicas share |
//! | [`sealed`] | objects with private keys in them |
//!
//! The `object_store` crate talks to S3 and its likes, Google Cloud Storage and Azure Blob Storage. It reads the credentials from the environment variables of these services, and repeats failed requests.

pub mod download;
pub mod follow;
pub mod history;
pub mod lease;
pub mod packed;
pub mod releases;
pub mod replicas;
pub mod run;
pub mod sealed;
pub mod store;
pub mod verify;
