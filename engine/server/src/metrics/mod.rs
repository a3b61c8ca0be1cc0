//! Encodes all counters in the OpenMetrics text format.
//!
//! Requests only add to plain counters ([`Traffic`], [`ConnectionCounters`]). Names and labels are added here, for each scrape.
//! The number of series depends only on the tenants. Requests for unknown hosts count as `_unknown`, and responses of known hosts without a tenant as `_shared`.
//!
//! **Invariant:** counts nothing itself.

pub(crate) mod connection_counters;
pub mod history;
pub mod metric_list;
pub mod not_found;
pub mod process_memory;
pub mod tenant_history;
pub mod visits;
use std::fmt::Error;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use super::snapshot_store::{SHARED_HOSTS, SnapshotStore, UNKNOWN_HOSTS};
use super::tls::handshake_counters::HandshakeCounters;
use super::tls::overview::{CertificateLine, CertificateState};
use crate::access_log::AccessLog;
use crate::admin::status::{Availability, BucketTraffic, SharedReleaseUse, StatusBoard};
use crate::metrics::connection_counters::ConnectionCounters;
use crate::metrics::process_memory::MemoryUse;
use release::snapshot::preview::tenant_of_preview;
use release::snapshot::traffic::{LATENCY_BOUNDS, Traffic};

/// The media type of the text that [`render`] returns.
pub(super) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Returns all counters in the OpenMetrics text format.
///
/// # Errors
/// Never, since the text is written to memory. The encoder's trait returns a result.
pub(super) fn render(counters: Counters) -> Result<String, Error> {
    let mut registry = Registry::with_prefix("rowhouse");
    registry.register_with_unit(
        "reload_duration",
        "Time from noticing a change until the new snapshot is current",
        Unit::Seconds,
        counters.board.reloads.clone(),
    );
    registry.register_with_unit(
        "render_wait",
        "Time that requests waited for their tenant to be rendered",
        Unit::Seconds,
        counters.snapshots.waits.clone(),
    );
    registry.register_with_unit(
        "render_duration",
        "Time to render a tenant",
        Unit::Seconds,
        counters.board.renders.0.clone(),
    );
    registry.register_collector(Box::new(counters));
    let mut encoded = String::new();
    text::encode(&mut encoded, &registry)?;
    Ok(encoded)
}

/// The sources of the counters.
#[derive(Debug)]
pub(super) struct Counters {
    pub(super) snapshots: Arc<SnapshotStore>,
    pub(super) board: Arc<StatusBoard>,
    pub(super) access_log: Option<AccessLog>,
    /// The certificate state of the hosts in the snapshot; empty without HTTPS.
    pub(super) certificates: Vec<CertificateLine>,
    /// The memory of the process; `None` where the system does not say it.
    pub(super) memory: Option<MemoryUse>,
}

impl Collector for Counters {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let snapshots = &self.snapshots;
        let tenants = snapshots.tenants();
        let owners = || {
            let named = tenants.iter().map(|(id, traffic)| (&**id, &**traffic));
            named.chain([
                (SHARED_HOSTS, &snapshots.shared),
                (UNKNOWN_HOSTS, &snapshots.unknown),
            ])
        };
        requests(&mut encoder, owners())?;
        latency(&mut encoder, owners())?;
        connections(&mut encoder, &snapshots.connections)?;
        handshakes(&mut encoder, &snapshots.handshakes)?;
        certificates(&mut encoder, &self.certificates)?;
        self.tenants(&mut encoder)?;
        self.store(&mut encoder)?;
        self.memory(&mut encoder)?;
        self.alerts(&mut encoder)?;
        self.bucket(&mut encoder)?;
        self.state(&mut encoder)
    }
}

/// A tenant's id, `_shared` or `_unknown`, with its traffic.
type LabelledTraffic<'a> = (&'a str, &'a Traffic);

fn requests<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    owners: impl Iterator<Item = LabelledTraffic<'a>> + Clone,
) -> Result<(), Error> {
    let mut family = encoder.encode_descriptor(
        "http_requests",
        "Requests answered",
        None,
        MetricType::Counter,
    )?;
    for (tenant, traffic) in owners.clone() {
        for count in traffic.counts() {
            let labels = [
                ("tenant", tenant),
                ("status", count.class),
                ("coding", count.encoding.token()),
            ];
            family
                .encode_family(&labels)?
                .encode_counter::<NoLabelSet, _, u64>(&count.requests, None)?;
        }
    }
    let unit = Some(&Unit::Bytes);
    let mut family = encoder.encode_descriptor(
        "http_response",
        "Bytes of response bodies",
        unit,
        MetricType::Counter,
    )?;
    for (tenant, traffic) in owners {
        for count in traffic.counts() {
            let labels = [
                ("tenant", tenant),
                ("status", count.class),
                ("coding", count.encoding.token()),
            ];
            family
                .encode_family(&labels)?
                .encode_counter::<NoLabelSet, _, u64>(&count.bytes, None)?;
        }
    }
    Ok(())
}

fn latency<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    owners: impl Iterator<Item = LabelledTraffic<'a>>,
) -> Result<(), Error> {
    let help = "Time from a request's header fields until its response is ready";
    let mut family = encoder.encode_descriptor(
        "http_request_duration",
        help,
        Some(&Unit::Seconds),
        MetricType::Histogram,
    )?;
    for (tenant, traffic) in owners {
        let latency = traffic.latency();
        let count = latency.buckets.iter().sum();
        if count == 0 {
            continue;
        }
        let bounds = LATENCY_BOUNDS
            .iter()
            .map(|micros| seconds(*micros))
            .chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = bounds.zip(latency.buckets).collect();
        family
            .encode_family(&[("tenant", tenant)])?
            .encode_histogram::<NoLabelSet>(seconds(latency.sum), count, &buckets, None)?;
    }
    Ok(())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "exact for 285 years of microseconds"
)]
fn seconds(micros: u64) -> f64 {
    micros as f64 / 1_000_000.0
}

fn connections(
    encoder: &mut DescriptorEncoder<'_>,
    counted: &ConnectionCounters,
) -> Result<(), Error> {
    let accepted = counted.accepted.load(Relaxed);
    let open = counted.open.load(Relaxed);
    encoder
        .encode_descriptor(
            "connections",
            "Accepted connections",
            None,
            MetricType::Counter,
        )?
        .encode_counter::<NoLabelSet, _, u64>(&accepted, None)?;
    gauge(encoder, "connections_open", "Open connections", None, open)?;
    let limit = counted.limit.load(Relaxed);
    let help = "Maximum number of open connections";
    gauge(encoder, "connections_limit", help, None, limit)?;

    let help = "Connections that the server closed early, by reason";
    let mut family =
        encoder.encode_descriptor("connections_ended", help, None, MetricType::Counter)?;
    for (reason, counter) in [
        ("address", &counted.refused),
        ("header_timeout", &counted.slow_heads),
        ("write_timeout", &counted.slow_readers),
        ("request_timeout", &counted.slow_requests),
        ("idle_timeout", &counted.idle),
        ("room", &counted.made_room),
        ("malformed", &counted.malformed),
    ] {
        family
            .encode_family(&[("reason", reason)])?
            .encode_counter::<NoLabelSet, _, u64>(&counter.load(Relaxed), None)?;
    }
    Ok(())
}

fn handshakes(
    encoder: &mut DescriptorEncoder<'_>,
    counted: &HandshakeCounters,
) -> Result<(), Error> {
    let help = "TLS handshakes, by negotiated version and result";
    let mut family =
        encoder.encode_descriptor("tls_handshakes", help, None, MetricType::Counter)?;
    for (version, result, count) in counted.counts() {
        family
            .encode_family(&[("version", version), ("result", result)])?
            .encode_counter::<NoLabelSet, _, u64>(&count, None)?;
    }
    Ok(())
}

/// Encodes the certificate state of hosts that tenants claim.
fn certificates(
    encoder: &mut DescriptorEncoder<'_>,
    lines: &[CertificateLine],
) -> Result<(), Error> {
    let is_invalid = |line: &&CertificateLine| line.state != CertificateState::Valid;
    let invalid = lines.iter().filter(is_invalid).count();
    let invalid = u64::try_from(invalid).unwrap_or(u64::MAX);
    let help = "Hosts without a valid certificate";
    gauge(encoder, "certificates_missing", help, None, invalid)?;
    let unit = Some(&Unit::Seconds);
    let help = "Expiry time of a host's certificate, since 1970";
    let name = "certificate_not_after";
    let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
    for (host, end) in lines
        .iter()
        .filter_map(|line| Some((&line.host, line.not_after?)))
    {
        let end = i64::try_from(end).unwrap_or(i64::MAX);
        family
            .encode_family(&[("host", &**host)])?
            .encode_gauge(&end)?;
    }
    let help = "Time of the last certificate order for a host, since 1970";
    let name = "certificate_last_try";
    let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
    for (host, last) in lines
        .iter()
        .filter_map(|line| Some((&line.host, line.last_try?)))
    {
        let last = i64::try_from(last).unwrap_or(i64::MAX);
        family
            .encode_family(&[("host", &**host)])?
            .encode_gauge(&last)?;
    }
    let help = "Whether the last certificate order for a host failed, by kind";
    let mut family =
        encoder.encode_descriptor("certificate_failing", help, None, MetricType::Gauge)?;
    for (host, error) in lines
        .iter()
        .filter_map(|line| Some((&line.host, line.error.as_ref()?)))
    {
        family
            .encode_family(&[("host", &**host), ("kind", error.kind.name())])?
            .encode_gauge(&1_i64)?;
    }
    Ok(())
}

/// Encodes the requests to the bucket. A server without a bucket has the same series.
fn bucket_traffic(
    encoder: &mut DescriptorEncoder<'_>,
    traffic: &BucketTraffic,
) -> Result<(), Error> {
    let help = "Requests to the bucket, by kind and result";
    let mut family =
        encoder.encode_descriptor("bucket_requests", help, None, MetricType::Counter)?;
    for (kind, results) in BucketTraffic::KINDS.iter().zip(&traffic.requests) {
        for (result, count) in BucketTraffic::RESULTS.iter().zip(results) {
            family
                .encode_family(&[("kind", *kind), ("result", *result)])?
                .encode_counter::<NoLabelSet, _, u64>(count, None)?;
        }
    }
    let help = "Time of a request to the bucket, with its repetitions";
    let unit = Some(&Unit::Seconds);
    let bounds = BucketTraffic::LATENCY_BOUNDS
        .iter()
        .map(|millis| seconds(millis * 1_000))
        .chain([f64::INFINITY]);
    let buckets: Vec<(f64, u64)> = bounds.zip(traffic.latency).collect();
    let name = "bucket_request_duration";
    encoder
        .encode_descriptor(name, help, unit, MetricType::Histogram)?
        .encode_histogram::<NoLabelSet>(
            seconds(traffic.latency_micros),
            traffic.latency.iter().sum(),
            &buckets,
            None,
        )?;
    let help = "Bytes of objects that were read from the bucket, or written";
    let unit = Some(&Unit::Bytes);
    let counts = [("received", traffic.received), ("sent", traffic.sent)];
    labelled_counter(
        encoder,
        "bucket_transferred",
        help,
        unit,
        "direction",
        counts,
    )?;
    let help = "New versions of tenants whose content was on the disk, or was read from the bucket";
    let counts = [("hit", traffic.cache_hits), ("miss", traffic.cache_misses)];
    labelled_counter(encoder, "bucket_cache", help, None, "result", counts)?;
    let help = "Leases of the bucket that this process holds";
    gauge(encoder, "bucket_leases", help, None, traffic.leases)
}

/// Encodes a counter for each value of a label.
fn labelled_counter(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    label: &str,
    counts: [(&str, u64); 2],
) -> Result<(), Error> {
    let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Counter)?;
    for (value, count) in counts {
        family
            .encode_family(&[(label, value)])?
            .encode_counter::<NoLabelSet, _, u64>(&count, None)?;
    }
    Ok(())
}

fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    value: u64,
) -> Result<(), Error> {
    encoder
        .encode_descriptor(name, help, unit, MetricType::Gauge)?
        .encode_gauge(&i64::try_from(value).unwrap_or(i64::MAX))
}

impl Counters {
    fn tenants(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let status = self.board.current();
        let removed = status.recently_removed(SystemTime::now());
        let removed = removed.map(|removed| (&*removed.id, Availability::Removed));
        let current = status.tenants().map(|tenant| (&*tenant.id, tenant.state));
        let (previews, tenants): (Vec<_>, Vec<_>) = current
            .chain(removed)
            .partition(|(id, _)| tenant_of_preview(id).is_some());
        // Alerts about tenants must not begin with the preview of a change.
        for (name, help, rows) in [
            ("tenants", "Tenants by state, without previews", tenants),
            ("previews", "Previews of tenants by state", previews),
        ] {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for state in Availability::ALL {
                let count = rows.iter().filter(|(_, found)| *found == state).count();
                family
                    .encode_family(&[("state", state.name())])?
                    .encode_gauge(&u32::try_from(count).unwrap_or(u32::MAX))?;
            }
        }
        let pinned = status.tenants().filter(|tenant| tenant.pinned.is_some());
        let pinned = u64::try_from(pinned.count()).unwrap_or(u64::MAX);
        let help = "Tenants that serve a pinned release";
        gauge(encoder, "tenants_pinned", help, None, pinned)?;
        let unreadable = status
            .tenants()
            .filter(|tenant| tenant.unreadable_pin.is_some());
        let unreadable = u64::try_from(unreadable.count()).unwrap_or(u64::MAX);
        let help = "Tenants that respond with 503 because their pinned release cannot be served";
        let name = "tenants_pin_unreadable";
        gauge(encoder, name, help, None, unreadable)?;
        let help = "Duration of the last compilation";
        let unit = Some(&Unit::Seconds);
        let mut family =
            encoder.encode_descriptor("tenant_compilation", help, unit, MetricType::Gauge)?;
        for tenant in status.tenants() {
            family
                .encode_family(&[("tenant", &*tenant.id)])?
                .encode_gauge(&tenant.compiled_in.as_secs_f64())?;
        }
        let help = "Views of pages, as `rowhouse visits` counts them";
        let views = self.snapshots.visits.views();
        let mut family =
            encoder.encode_descriptor("page_views", help, None, MetricType::Counter)?;
        for tenant in status.tenants() {
            let count = views.get(&tenant.id).copied().unwrap_or_default();
            family
                .encode_family(&[("tenant", &*tenant.id)])?
                .encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
        Ok(())
    }

    /// Encodes the state of memory and disk.
    fn store(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let store = self.board.store();
        let bytes = Some(&Unit::Bytes);
        let help = "Bytes of pages and images in memory";
        gauge(encoder, "store_memory", help, bytes, store.memory_bytes)?;
        if let Some(limit) = store.memory_limit {
            let help = "Memory limit for pages and images";
            gauge(encoder, "store_memory_limit", help, bytes, limit)?;
        }
        let help = "Tenants whose pages are in memory";
        gauge(encoder, "store_tenants", help, None, store.tenants)?;
        let help = "Evictions of tenants from memory";
        encoder
            .encode_descriptor("store_evictions", help, None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, u64>(&store.evictions, None)?;
        let help = "Tenants restored from the state instead of being rendered";
        encoder
            .encode_descriptor("store_recalls", help, None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, u64>(&store.recalls, None)?;
        let help = "Blobs of releases on disk";
        gauge(encoder, "store_disk_blobs", help, None, store.disk_blobs)?;
        let help = "Bytes of the blobs of releases on disk";
        gauge(encoder, "store_disk", help, bytes, store.disk_bytes)?;
        let help = "Releases that wait to be written to disk";
        gauge(encoder, "store_queued_releases", help, None, store.queued)?;
        if let Some(state) = &store.state {
            let help = "Whether the state can be written";
            let is_writable = u64::from(state.problem.is_none());
            gauge(encoder, "state_writable", help, None, is_writable)?;
            let help = "Failed writes of the state";
            encoder
                .encode_descriptor("state_write_failures", help, None, MetricType::Counter)?
                .encode_counter::<NoLabelSet, _, u64>(&state.failures, None)?;
            let help = "Bytes of releases that wait to be written to disk";
            gauge(encoder, "state_queued", help, bytes, state.queued_bytes)?;
        }
        let help = "Panics of the thread that writes the state";
        encoder
            .encode_descriptor("store_writer_panics", help, None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, u64>(&store.panics, None)
    }

    /// Encodes the memory of the process and of its parts.
    fn memory(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let bytes = Some(&Unit::Bytes);
        if let Some(used) = &self.memory {
            let help = "Memory that the process has from the system";
            gauge(encoder, "memory_resident", help, bytes, used.resident)?;
            if let Some(limit) = used.limit {
                let help = "Memory limit of the cgroup, or else the memory of the machine";
                gauge(encoder, "memory_limit", help, bytes, limit)?;
            }
            if let Some(allocated) = used.allocated {
                let help = "Memory that the program has allocated, in builds with jemalloc";
                gauge(encoder, "memory_allocated", help, bytes, allocated)?;
            }
        }
        let memory = self.board.memory();
        let help =
            "Memory of the parts that grow: pages, images, data of tenants, reading and rendering";
        let mut family =
            encoder.encode_descriptor("memory_part", help, bytes, MetricType::Gauge)?;
        for (part, bytes) in [
            ("pages", memory.pages),
            ("images", memory.images),
            ("tenant_data", memory.tenant_data),
            ("work", memory.work),
        ] {
            family
                .encode_family(&[("part", part)])?
                .encode_gauge(&i64::try_from(bytes).unwrap_or(i64::MAX))?;
        }
        let help = "Memory limit of reading and rendering";
        gauge(encoder, "memory_work_limit", help, bytes, memory.work_limit)?;
        let help = "Jobs that wait for a thread or for memory";
        gauge(encoder, "queued_jobs", help, None, memory.queued_jobs)?;
        let help = "Memory of pages and images, of the 20 tenants that use the most";
        let mut family =
            encoder.encode_descriptor("tenant_memory", help, bytes, MetricType::Gauge)?;
        for (tenant, bytes) in &memory.largest {
            family
                .encode_family(&[("tenant", &**tenant)])?
                .encode_gauge(&i64::try_from(*bytes).unwrap_or(i64::MAX))?;
        }
        Ok(())
    }

    /// Encodes the alerts of `--alert-webhook`; nothing without it.
    fn alerts(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let Some(alerts) = &*self.board.alerts() else {
            return Ok(());
        };
        for (name, help, value) in [
            (
                "alerts_sent",
                "Alerts and resolved alerts that the receiver of `--alert-webhook` got",
                alerts.sent,
            ),
            (
                "alert_failures",
                "Messages that the receiver of `--alert-webhook` did not get",
                alerts.failures,
            ),
        ] {
            encoder
                .encode_descriptor(name, help, None, MetricType::Counter)?
                .encode_counter::<NoLabelSet, _, u64>(&value, None)?;
        }
        let help = "Alerts that wait for the receiver of `--alert-webhook`";
        gauge(encoder, "alerts_unsent", help, None, alerts.unsent)
    }

    /// Encodes the state of the bucket that this replica follows.
    fn bucket(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let bucket = self.board.bucket();
        let bucket = bucket.as_ref().as_ref();
        let help = "Problems with the bucket of `--store`, as `/readyz` lists them";
        let problems = bucket.map_or(0, |bucket| bucket.problems.len() as u64);
        gauge(encoder, "bucket_problems", help, None, problems)?;

        let help = "Tenants of the bucket whose content is downloaded at their next request";
        let dormant = bucket.map_or(0, |bucket| bucket.dormant as u64);
        gauge(encoder, "bucket_dormant_tenants", help, None, dormant)?;

        let help = "Time since the bucket of `--store` last answered; 0 without `--store`";
        let age = bucket.map_or(0, |bucket| bucket.answered.elapsed().as_secs());
        gauge(
            encoder,
            "bucket_answer_age",
            help,
            Some(&Unit::Seconds),
            age,
        )?;

        let help = "Time of the last collection of the bucket, since 1970; 0 if none is known";
        let last = bucket.and_then(|bucket| bucket.last_collection);
        let last = last.map_or(0, |last| last.as_secs());
        let unit = Some(&Unit::Seconds);
        gauge(encoder, "bucket_last_collection", help, unit, last)?;
        let none = BucketTraffic::default();
        bucket_traffic(encoder, bucket.map_or(&none, |bucket| &bucket.traffic))?;
        let help = "Releases in the bucket: rendered by another replica and reused, created, damaged, or not reached; and their best content encodings";
        let mut family =
            encoder.encode_descriptor("shared_releases", help, None, MetricType::Counter)?;
        for of in SharedReleaseUse::ALL {
            let count = self.board.shared_releases.get(of);
            family
                .encode_family(&[("result", of.label())])?
                .encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
        Ok(())
    }

    /// Encodes the age of the snapshot and the health of the reload loop and the log.
    fn state(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let help = "Time since the current snapshot was published";
        let age = self.snapshots.age().as_secs();
        gauge(encoder, "snapshot_age", help, Some(&Unit::Seconds), age)?;

        let help = "Start time of the process, since 1970";
        let started = self.board.started().duration_since(UNIX_EPOCH);
        let started = started.map_or(0, |since| since.as_secs());
        gauge(encoder, "start_time", help, Some(&Unit::Seconds), started)?;

        let help = "Whether the last attempt to read the folders failed";
        let alarm = self.board.current().alarm.is_some();
        gauge(encoder, "reload_alarm", help, None, u64::from(alarm))?;

        let help = "Time since the last heartbeat of the reload loop, which beats every second";
        let silence = self.board.silence().as_secs();
        let unit = Some(&Unit::Seconds);
        gauge(encoder, "reload_loop_heartbeat_age", help, unit, silence)?;

        let help = "Restarts of the reload loop after a panic";
        let restarts = self.board.restarts();
        encoder
            .encode_descriptor("reload_loop_restarts", help, None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, u64>(&restarts, None)?;

        let help =
            "Whether changes are found by polling, because the system sends no notifications";
        let polling = u64::from(self.board.current().polling);
        gauge(encoder, "watch_polling", help, None, polling)?;

        let help = "Blocks of the access log, of about 16 KB, that were dropped because the log was not read";
        let lost = self.access_log.as_ref().map_or(0, AccessLog::lost);
        encoder
            .encode_descriptor("access_log_lost_pieces", help, None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, u64>(&lost, None)?;

        let help = "Blocks of page views, of about 100 each, that were not counted because too many came at once";
        let lost = self.snapshots.visits.lost();
        encoder
            .encode_descriptor("visits_lost_pieces", help, None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, u64>(&lost, None)
    }
}
