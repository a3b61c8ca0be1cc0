//! The value parsers of the flags: sizes, durations, addresses and the origin.
//!
//! **Invariant:** a parser returns a plain value, or a message that names the right form.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use bytesize::ByteSize;
use jiff::SpanRelativeTo;
use jiff::fmt::friendly::SpanParser;

use content::address::Origin;
use content::formats::check_format;
use content::name::{TenantId, TenantIdError};

/// The shortest and the longest timeout. Longer timeouts overflow the clocks of some systems.
const TIMEOUTS: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(365 * 24 * 60 * 60);

/// Returns a parser of sizes in bytes within `range`: `512MiB`, `1.5GB`, or a plain number of bytes.
pub(super) fn size<T: TryFrom<u64> + 'static>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let bytes = text.parse::<ByteSize>().map_err(|_| {
            "write a size such as 512MiB, 1.5GB, or a plain number of bytes".to_owned()
        });
        let ByteSize(bytes) = bytes?;
        let value = T::try_from(bytes).ok().filter(|_| range.contains(&bytes));
        value.ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            format!("write a size from {least} to {most} bytes")
        })
    }
}

/// Parses the name of a tenant, or a name under which a fleet publishes what all tenants share.
pub(super) fn versioned_name(text: &str) -> Result<String, TenantIdError> {
    #[cfg(feature = "bucket")]
    if fleet::key::SHARED.contains(&text) {
        return Ok(text.to_owned());
    }
    TenantId::new(text).map(|id| id.to_string())
}

/// Parses the label of a preview. The id of the tenant may still be too long for it.
#[cfg(feature = "bucket")]
pub(super) fn preview_label(text: &str) -> Result<String, String> {
    match TenantId::of_preview("a", text) {
        Ok(_) => Ok(text.to_owned()),
        Err(TenantIdError::BadLabel { reason, .. }) => Err(reason.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// Parses a timeout from a millisecond to a year: `200ms`, `1m30s`, or a plain number of seconds.
pub(super) fn timeout(text: &str) -> Result<Duration, String> {
    duration(text)
        .filter(|duration| TIMEOUTS.contains(duration))
        .ok_or_else(|| {
            "write a time from 1ms to 365d, such as 200ms, 10s, 5m, or a plain number of seconds"
                .to_owned()
        })
}

/// Parses a duration of whole seconds and returns their number: `20s`, `24h`, `7d`, or a plain number of seconds.
pub(super) fn whole_seconds<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    duration(text)
        .filter(|duration| duration.subsec_nanos() == 0)
        .and_then(|duration| T::try_from(duration.as_secs()).ok())
        .ok_or_else(|| {
            "write a time in whole seconds, such as 20s, 24h, 7d, or a plain number of seconds"
                .to_owned()
        })
}

/// Parses a duration with its units, or a plain number of seconds. A day has 24 hours.
fn duration(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let span = SpanParser::new().parse_span(text).ok()?;
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    Duration::try_from(duration).ok()
}

/// Parses an address with its port. A port alone and `localhost` mean this machine: `8080` is `127.0.0.1:8080`.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix("localhost:").unwrap_or(text);
    match port.parse::<u16>() {
        Ok(port) => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        Err(_) => full_address(text),
    }
}

/// Parses an address with its port, for a listener that other machines have to reach. A port alone is refused.
pub(super) fn full_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        let port = text.rsplit(':').next().and_then(|port| port.parse().ok());
        match (text.parse::<IpAddr>(), port) {
            (Ok(address), _) if address.is_ipv4() => {
                format!("add a port, as in `{text}:8080`")
            }
            (Ok(_), _) => "write an IPv6 address in brackets, with a port, as in `[::1]:8080`".to_owned(),
            (Err(_), port) => {
                let port: u16 = port.unwrap_or(8080);
                format!(
                    "write an IP address and a port: `127.0.0.1:{port}` for this machine only, `[::]:{port}` for every address"
                )
            }
        }
    })
}

/// Parses the origin of the sites. If the scheme is missing, the error message suggests a complete URL.
pub(super) fn origin(text: &str) -> Result<Origin, String> {
    if !text.contains("://") && !text.is_empty() {
        let host = text.split([':', '/']).next().unwrap_or_default();
        let is_local = host == "localhost"
            || host.ends_with(".localhost")
            || host
                .parse::<IpAddr>()
                .is_ok_and(|address| address.is_loopback());
        let scheme = if is_local { "http" } else { "https" };
        let completed = format!("{scheme}://{text}");
        if completed.parse::<Origin>().is_ok() {
            return Err(format!("the scheme is missing: write `{completed}`"));
        }
    }
    text.parse::<Origin>().map_err(|error| error.to_string())
}

/// Parses the name of a credential: letters, digits, `-` and `_`.
pub(super) fn credential_name(text: &str) -> Result<String, String> {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    match !text.is_empty() && text.bytes().all(is_sign) {
        true => Ok(text.to_owned()),
        false => Err("use letters, digits, `-` and `_`, as in `client`".to_owned()),
    }
}

/// Parses the user name of a credential.
pub(super) fn user_name(text: &str) -> Result<String, String> {
    formatted("user-name", text).map(|()| text.to_owned())
}

/// Parses a day.
pub(super) fn day(text: &str) -> Result<jiff::civil::Date, String> {
    formatted("date", text)?;
    text.parse().map_err(|error: jiff::Error| error.to_string())
}

/// Checks a text against a format of `deployment.yaml`.
fn formatted(format: &str, text: &str) -> Result<(), String> {
    check_format(format, text).map_err(|(problem, hint)| hint.unwrap_or(problem))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_size(text: &str) -> Result<u64, String> {
        size(0..=u64::MAX)(text)
    }

    #[test]
    fn sizes_have_units_or_are_bytes() {
        for (text, bytes) in [
            ("536870912", 536_870_912),
            ("512MiB", 536_870_912),
            ("512mib", 536_870_912),
            ("512 MiB", 536_870_912),
            ("1.5GiB", 1_610_612_736),
            ("512MB", 512_000_000),
            ("1GiB", 1 << 30),
            ("16Ki", 16_384),
            ("0", 0),
        ] {
            assert_eq!(any_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "much", "-1", "12XB", "MiB", "0.5", "1,5GiB"] {
            let error = any_size(text).unwrap_err();
            assert!(error.contains("512MiB"), "{text}: {error}");
        }
    }

    #[test]
    fn sizes_outside_of_the_range_are_refused_with_the_range() {
        let parse = size::<usize>(256..=1024);
        assert_eq!(parse("1KiB"), Ok(1024));
        for text in ["255", "1025", "1MiB", "99999999999EiB"] {
            let error = parse(text).unwrap_err();
            assert_eq!(error, "write a size from 256 to 1024 bytes", "{text}");
        }
        assert!(size::<u8>(0..=u64::MAX)("1KiB").is_err());
    }

    #[test]
    fn timeouts_have_units_or_are_seconds() {
        for (text, milliseconds) in [
            ("10", 10_000),
            ("0.5", 500),
            ("200ms", 200),
            ("1m30s", 90_000),
            ("5m", 300_000),
            ("1.5h", 5_400_000),
            ("1 hour", 3_600_000),
            ("365d", 365 * 24 * 3_600_000),
        ] {
            let expected = Duration::from_millis(milliseconds);
            assert_eq!(timeout(text), Ok(expected), "{text}");
        }
        for text in [
            "", "soon", "0", "0s", "-5s", "5s ago", "NaN", "inf", "1e300", "366d", "1mo", "10x",
        ] {
            let error = timeout(text).unwrap_err();
            assert!(error.contains("200ms"), "{text}: {error}");
        }
    }

    #[test]
    fn whole_seconds_have_no_fraction() {
        for (text, seconds) in [
            ("20", 20),
            ("20s", 20),
            ("24h", 86_400),
            ("7d", 604_800),
            ("1w", 604_800),
            ("0", 0),
        ] {
            assert_eq!(whole_seconds::<u32>(text), Ok(seconds), "{text}");
        }
        for text in ["", "200ms", "0.5", "-1", "4294967296", "1y"] {
            let error = whole_seconds::<u32>(text).unwrap_err();
            assert!(error.contains("whole seconds"), "{text}: {error}");
        }
        assert_eq!(whole_seconds::<u64>("18446744073709551615"), Ok(u64::MAX));
    }

    #[test]
    fn port_alone_and_localhost_mean_this_machine() {
        let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        for (text, expected) in [
            ("8080", local(8080)),
            ("localhost:8080", local(8080)),
            ("127.0.0.1:0", local(0)),
        ] {
            assert_eq!(address(text), Ok(expected), "{text}");
        }
        assert_eq!(address("[::]:80"), Ok("[::]:80".parse().unwrap()));
    }

    #[test]
    fn bad_addresses_are_refused_with_the_right_form() {
        for (text, form) in [
            (":8080", "`[::]:8080` for every address"),
            ("*:9000", "`127.0.0.1:9000` for this machine only"),
            ("studio.example:443", "`[::]:443` for every address"),
            ("", "`127.0.0.1:8080` for this machine only"),
            ("65536", "`127.0.0.1:8080` for this machine only"),
            ("10.0.0.1", "`10.0.0.1:8080`"),
            ("::1", "`[::1]:8080`"),
        ] {
            let error = address(text).unwrap_err();
            assert!(error.contains(form), "{text}: {error}");
        }
        let error = full_address("443").unwrap_err();
        assert!(error.contains("`[::]:443` for every address"), "{error}");
    }

    #[test]
    fn origin_without_scheme_is_refused_with_the_likely_one() {
        for (text, completed) in [
            ("studio.example", "`https://studio.example`"),
            ("studio.example:8443", "`https://studio.example:8443`"),
            ("localhost:8080", "`http://localhost:8080`"),
            ("127.0.0.1:8080", "`http://127.0.0.1:8080`"),
        ] {
            let error = origin(text).unwrap_err();
            assert!(error.contains(completed), "{text}: {error}");
        }
        assert!(origin("https://studio.example").is_ok());
        for text in ["", "studio.example/path", "ftp://studio.example"] {
            assert!(origin(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn plain_numbers_stay_valid(number in any::<u32>()) {
            let text = number.to_string();
            prop_assert_eq!(any_size(&text), Ok(u64::from(number)));
            prop_assert_eq!(whole_seconds::<u32>(&text), Ok(number));
        }

        #[test]
        fn units_multiply_the_number(number in 0..1_000_000_u32) {
            let number = u64::from(number);
            for (unit, factor) in [("KiB", 1 << 10), ("MiB", 1 << 20), ("GB", 1_000_000_000)] {
                prop_assert_eq!(any_size(&format!("{number}{unit}")), Ok(number * factor));
            }
            for (unit, factor) in [("s", 1), ("m", 60), ("h", 3_600)] {
                prop_assert_eq!(whole_seconds(&format!("{number}{unit}")), Ok(number * factor));
            }
        }

        #[test]
        fn free_text_never_panics(text in ".{0,24}") {
            let _ = (any_size(&text), timeout(&text), whole_seconds::<u32>(&text));
            let _ = (address(&text), full_address(&text), origin(&text));
        }

        #[test]
        fn every_socket_address_is_accepted(octets in any::<[u8; 16]>(), port in any::<u16>()) {
            let expected = SocketAddr::from((octets, port));
            prop_assert_eq!(address(&expected.to_string()), Ok(expected));
        }
    }
}
