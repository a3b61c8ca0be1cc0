//! Requests: routing, negotiation, large files, pending tenants and the access log.

mod large_files;
mod log_and_traces;
mod negotiation;
mod pending_tenants;
mod routing_properties;
