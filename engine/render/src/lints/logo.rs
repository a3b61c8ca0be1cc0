//! Finds logos that visitors cannot read in the header of a page.

/// Limit on the width of a logo, as a multiple of its height.
const MAX_WIDTH_RATIO: u32 = 8;
/// Limit on the height of a logo, as a multiple of its width.
const MAX_HEIGHT_RATIO: u32 = 3;
/// The height of an image file that is sharp on a screen with two pixels for each CSS pixel.
const MIN_IMAGE_HEIGHT: u32 = 72;

/// Returns what is wrong with a logo, after its name, and a hint. `size` is its width and height in pixels.
pub(super) fn problem(size: Option<(u32, u32)>, is_svg: bool) -> Option<(String, String)> {
    let Some((width, height)) = size else {
        // A broken image file has its own message.
        return is_svg.then(|| {
            let message = "has no `viewBox`, and no width and height in pixels";
            let hint = "add `viewBox=\"0 0 WIDTH HEIGHT\"` to the `<svg>` element of the file";
            (message.to_owned(), hint.to_owned())
        });
    };
    let shown_small = "so it is shown too small to read";
    if width > height.saturating_mul(MAX_WIDTH_RATIO) {
        let message = format!(
            "is more than {MAX_WIDTH_RATIO} times as wide as high ({width} x {height}), {shown_small}"
        );
        return Some((
            message,
            "use a shorter version of the logo, for example in two lines".to_owned(),
        ));
    }
    if height > width.saturating_mul(MAX_HEIGHT_RATIO) {
        let message = format!(
            "is more than {MAX_HEIGHT_RATIO} times as high as wide ({width} x {height}), {shown_small}"
        );
        return Some((
            message,
            "use a lower version of the logo, for example its symbol alone".to_owned(),
        ));
    }
    (!is_svg && height < MIN_IMAGE_HEIGHT).then(|| {
        (
            format!("is {height} pixels high, so it is blurred on sharp screens"),
            format!("use an SVG, or an image that is at least {MIN_IMAGE_HEIGHT} pixels high"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logo_is_unsuited_at_extreme_proportions_or_a_small_size() {
        for (size, is_svg, part) in [
            (Some((120, 32)), true, None),
            (Some((576, 72)), false, None),
            (Some((72, 216)), false, None),
            (None, false, None),
            (None, true, Some("has no `viewBox`")),
            (
                Some((577, 72)),
                false,
                Some("8 times as wide as high (577 x 72)"),
            ),
            (
                Some((9, 28)),
                true,
                Some("3 times as high as wide (9 x 28)"),
            ),
            (Some((71, 71)), false, Some("is 71 pixels high")),
            (Some((u32::MAX, u32::MAX)), true, None),
        ] {
            let found = problem(size, is_svg).map(|(message, _)| message);
            let is_expected = match (&found, part) {
                (Some(message), Some(part)) => message.contains(part),
                (found, part) => found.is_none() && part.is_none(),
            };
            assert!(is_expected, "{size:?}: {found:?}");
        }
    }
}
