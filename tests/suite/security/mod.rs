//! Attacks by tenants and by clients.

mod access;
mod connection_floods;
mod escaping;
mod header_fields;
mod hostile_tenants;
mod shared_origin;
