//! The colour behind each picture of a page until it is there.
//!
//! It stands in an attribute, `data-ground`, and the theme's style takes it from there (CSS Values 5, `attr()`): what browsers that cannot do so leave out is no loss.
//! An attribute `style` is nothing that the policy allows; and with rules of its own, each page would need a hash in the policy of all pages.

use std::fmt::Write as _;

use bytes::Bytes;

use super::Renderer;
use crate::asset::Asset;
use crate::cache::key;
use crate::media::IN_SIZES;
use crate::picture::dominant::dominant;

/// How many pictures of a page have one. Those further down are there before anybody gets to them, and to unpack many large ones takes longer than a page may.
const MOST: usize = 4;
const IMAGE: &str = "<img src=\"";

impl Renderer<'_> {
    /// A page whose first pictures in sizes say which colour they have most of.
    pub(super) fn with_grounds(&self, html: &str) -> String {
        let mut written = String::with_capacity(html.len());
        let mut rest = html;
        for _ in 0..MOST {
            let Some((before, src, behind)) = next_image(rest) else {
                break;
            };
            written.push_str(before);
            let name = src.rsplit('/').next().unwrap_or_default();
            let mut assets = self.prepared.assets.values();
            let asset = assets.find(|asset| asset.hashed_name == name);
            if let Some([red, green, blue]) = asset.and_then(|asset| self.ground(asset)) {
                // Writing into a String cannot fail.
                let _ = write!(written, " data-ground=\"#{red:02x}{green:02x}{blue:02x}\"");
            }
            rest = behind;
        }
        written + rest
    }

    /// To unpack a large picture takes a tenth of a second: it is done once.
    fn ground(&self, asset: &Asset) -> Option<[u8; 3]> {
        let key = key("ground", &[asset.hashed_name.as_bytes()]);
        let found = self.inputs.cache.get(key, || {
            let colour = dominant(&asset.bytes);
            let colour = colour.map_or_else(Bytes::new, |colour| Bytes::copy_from_slice(&colour));
            Ok::<_, std::convert::Infallible>(colour)
        });
        found.ok()?.as_ref().try_into().ok()
    }
}

/// The next image in sizes: everything up to its address, with the quote behind that, the address, and the rest.
fn next_image(html: &str) -> Option<(&str, &str, &str)> {
    let picture = html.find(IN_SIZES)?;
    let image = html.get(picture..)?.find(IMAGE)?;
    let start = picture + image + IMAGE.len();
    let end = start + html.get(start..)?.find('"')?;
    Some((
        html.get(..=end)?,
        html.get(start..end)?,
        html.get(end + 1..)?,
    ))
}
