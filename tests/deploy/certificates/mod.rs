//! Certificates: from a test authority, from operators' files, and on disk.

pub(crate) mod acme_proxy;
pub(crate) mod authority;
mod challenges;
mod issuance;
mod misbehaving_authority;
mod operator_files;
mod persisted_certificates;
mod renewal;
mod replacement;
