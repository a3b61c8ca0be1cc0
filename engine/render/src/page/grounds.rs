//! The colour behind each picture of a page until it is there.
//!
//! It stands in the page's one style, by the end of the picture's address: an attribute `style` is nothing that the policy allows.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use bytes::Bytes;

use super::Renderer;
use crate::asset::Asset;
use crate::cache::key;
use crate::media::IN_SIZES;
use crate::picture::ground::ground;

impl Renderer<'_> {
    /// The rules for the pictures in sizes that a page shows.
    pub(super) fn grounds(&self, html: &str) -> String {
        let shown = html.split(IN_SIZES).skip(1);
        let names: BTreeSet<&str> = shown
            .filter_map(|rest| {
                let (_, rest) = rest.split_once("<img src=\"")?;
                rest.split('"').next()?.rsplit('/').next()
            })
            .collect();
        let mut rules = String::new();
        for name in names {
            let mut assets = self.prepared.assets.values();
            let asset = assets.find(|asset| asset.hashed_name == name);
            if let Some([red, green, blue]) = asset.and_then(|asset| self.ground(asset)) {
                // What it shows is to be read where it never comes.
                let is_dark = u32::from(red) * 3 + u32::from(green) * 6 + u32::from(blue) < 1_280;
                let text = if is_dark { "#fff" } else { "#000" };
                // Writing into a String cannot fail.
                let _ = write!(
                    rules,
                    "[src$=\"/{name}\"]{{background-color:#{red:02x}{green:02x}{blue:02x};color:{text}}}"
                );
            }
        }
        rules
    }

    /// To unpack a large picture takes a tenth of a second: it is done once.
    fn ground(&self, asset: &Asset) -> Option<[u8; 3]> {
        let key = key("ground", &[asset.hashed_name.as_bytes()]);
        let found = self.inputs.cache.get(key, || {
            let colour = ground(&asset.bytes);
            let colour = colour.map_or_else(Bytes::new, |colour| Bytes::copy_from_slice(&colour));
            Ok::<_, std::convert::Infallible>(colour)
        });
        found.ok()?.as_ref().try_into().ok()
    }
}
