//! Images, photos, videos and downloads.

pub(crate) mod downloads_and_videos;
pub(crate) mod images;
mod photo_weight;
