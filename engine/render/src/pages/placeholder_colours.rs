//! Placeholder colours: the dominant colours of a page's first images, which visitors see until the images arrive.
//!
//! **Invariant:** changes nothing but the start tags of images that have variants.

use std::fmt::Write as _;

use bytes::Bytes;

use crate::compile::cache::key;
use crate::images::dominant_colour::dominant;
use crate::media::PICTURE_START;
use crate::pages::page::Renderer;
use crate::resources::asset::Asset;

/// Limit on the images of a page that get a placeholder colour.
///
/// Images further down arrive before visitors scroll to them, and decoding many large images takes too long for one page.
const MAX_PLACEHOLDER_COLOURS: usize = 4;
const IMAGE: &str = "<img src=\"";

impl Renderer<'_> {
    /// Adds the dominant colour to the page's first images that have variants.
    pub(super) fn add_placeholder_colours(&self, html: &str) -> String {
        let mut written = String::with_capacity(html.len());
        let mut rest = html;
        for _ in 0..MAX_PLACEHOLDER_COLOURS {
            let Some((before, src, behind)) = next_image(rest) else {
                break;
            };
            written.push_str(before);
            let name = src.rsplit('/').next().unwrap_or_default();
            let mut assets = self.prepared.assets.values();
            let asset = assets.find(|asset| asset.hashed_name == name);
            if let Some([red, green, blue]) = asset.and_then(|asset| self.placeholder_colour(asset))
            {
                // Writing into a String cannot fail.
                let _ = write!(written, " data-ground=\"#{red:02x}{green:02x}{blue:02x}\"");
            }
            rest = behind;
        }
        written + rest
    }

    /// Returns the dominant colour of an image. The result is cached, because decoding a large image takes 0.1 s.
    fn placeholder_colour(&self, asset: &Asset) -> Option<[u8; 3]> {
        let key = key("ground", &[asset.hashed_name.as_bytes()]);
        let found = self.inputs.cache.get(key, || {
            let colour = dominant(&asset.bytes);
            let colour = colour.map_or_else(Bytes::new, |colour| Bytes::copy_from_slice(&colour));
            Ok::<_, std::convert::Infallible>(colour)
        });
        found.ok()?.as_ref().try_into().ok()
    }
}

/// Finds the next image with variants. Returns the HTML up to and including the quote after its URL, the URL, and the rest.
fn next_image(html: &str) -> Option<(&str, &str, &str)> {
    let picture = html.find(PICTURE_START)?;
    let image = html.get(picture..)?.find(IMAGE)?;
    let start = picture + image + IMAGE.len();
    let end = start + html.get(start..)?.find('"')?;
    Some((
        html.get(..=end)?,
        html.get(start..end)?,
        html.get(end + 1..)?,
    ))
}
