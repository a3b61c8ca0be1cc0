//! The archive of a release, and the files for systemd, containers and Kubernetes.

mod archive;
mod container;
mod kubernetes;
mod named_files;
mod systemd;
