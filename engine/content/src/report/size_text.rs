//! Sizes in messages.

/// Returns a size as people write it: `812 bytes`, `1 MiB`, `1.15 MiB`.
///
/// Rounds up to hundredths, so that a size above a limit never reads like the limit.
#[must_use]
pub fn size_text(bytes: u64) -> String {
    let (unit, name) = match bytes {
        0..1_024 => return format!("{bytes} bytes"),
        1_024..1_048_576 => (1 << 10, "KiB"),
        1_048_576..1_073_741_824 => (1 << 20, "MiB"),
        _ => (1_u128 << 30, "GiB"),
    };
    let hundredths = (u128::from(bytes) * 100).div_ceil(unit);
    match (hundredths / 100, hundredths % 100) {
        (whole, 0) => format!("{whole} {name}"),
        (whole, part) => format!("{whole}.{part:02} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_above_a_limit_never_reads_like_the_limit() {
        let sizes = [0, 1_023, 1_024, 1_048_576, 1_048_577, 1_200_013, 33 << 20];
        assert_eq!(
            sizes.map(size_text),
            [
                "0 bytes",
                "1023 bytes",
                "1 KiB",
                "1 MiB",
                "1.01 MiB",
                "1.15 MiB",
                "33 MiB"
            ]
        );
        assert_eq!(size_text(u64::MAX), "17179869184 GiB");
    }
}
