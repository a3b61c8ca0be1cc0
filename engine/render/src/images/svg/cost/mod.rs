//! Bounds the memory and the time that drawing an SVG takes, before it is drawn.
//!
//! The check walks the same tree as the renderer, after style sheets, references and defaults are resolved, and counts as the renderer works:
//!
//! - A group with an opacity, a mask, a clip path, a filter or a blend mode is drawn on a layer of its own. Nested layers are in memory at the same time.
//! - The tile of a pattern is drawn again for each path that it fills.
//! - A path is followed along its edges, and each dash is a path.
//!
//! Drawing cannot be interrupted, so this check is the only bound.
//!
//! A step is the work on one pixel of one colour, about a nanosecond.

#[cfg(test)]
mod tests;

use std::fmt;

use resvg::tiny_skia::{IntRect, PathSegment, Point, Rect, Transform};
use resvg::usvg::{ClipPath, Group, Mask, Node, NonZeroRect, Paint, Path, Pattern, Tree};

/// Limit on the memory in use at one time, in bytes: 16 layers of a large social image.
const MAX_BYTES: u64 = 64 << 20;
/// Limit on the steps: one to two seconds of a processor. The largest SVG of the theme takes a fiftieth.
const MAX_STEPS: u64 = 2_000_000_000;

/// Bytes per pixel.
const PIXEL_BYTES: u64 = 4;
/// Steps per node.
const NODE_STEPS: u64 = 200;
/// Steps per edge and row of pixels. The renderer divides a row into four.
const EDGE_STEPS: u64 = 256;
/// Steps and bytes per segment of a path.
const SEGMENT_COST: u64 = 128;
/// Steps per dash, which is a path of its own.
const DASH_STEPS: u64 = 4_000;
/// Edges per stroked line.
const STROKE_EDGES: u64 = 2;
/// Steps per pixel to create a layer and to blend it with the layer below.
const LAYER_STEPS: u64 = 32;
/// Steps per pixel and primitive of a filter.
const FILTER_STEPS: u64 = 256;
/// Buffers of a filter, besides the buffers of its primitives.
const EXTRA_FILTER_BUFFERS: u64 = 4;

/// The reason why an SVG takes too much memory or time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CostError(String);

impl fmt::Display for CostError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Adds up the cost of drawing a tree at this size.
///
/// # Errors
/// Returns the limit that the drawing exceeds.
pub(crate) fn check(
    tree: &Tree,
    transform: Transform,
    width: u32,
    height: u32,
) -> Result<(), CostError> {
    let mut meter = CostMeter {
        bytes: 0,
        layers: 0,
        steps: 0,
        most: MAX_STEPS,
    };
    // The maximum layer size that the renderer allows.
    let largest = IntRect::from_xywh(
        -2 * i32::try_from(width).unwrap_or(i32::MAX / 4),
        -2 * i32::try_from(height).unwrap_or(i32::MAX / 4),
        width.saturating_mul(5),
        height.saturating_mul(5),
    );
    let Some(largest) = largest else {
        return Err(CostError("the image has no area".to_owned()));
    };
    let canvas = Canvas { width, height };
    meter.held(canvas.pixels() * PIXEL_BYTES, |meter| {
        meter.nodes(tree.root(), canvas, largest, transform)
    })
}

/// The size of a drawing surface, in pixels.
#[derive(Debug, Clone, Copy)]
struct Canvas {
    width: u32,
    height: u32,
}

impl Canvas {
    fn pixels(self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// Returns the number of its pixels within an area.
    fn covered(self, area: Rect) -> u64 {
        let overlap = |from: f32, to: f32, most: u32| {
            (to.min(most as f32) - from.max(0.0)).max(0.0).ceil() as u64 + 1
        };
        let wide = overlap(area.left(), area.right(), self.width);
        let high = overlap(area.top(), area.bottom(), self.height);
        (wide * high).min(self.pixels())
    }
}

struct CostMeter {
    /// The bytes in use now.
    bytes: u64,
    /// The layers in use now.
    layers: u32,
    steps: u64,
    most: u64,
}

impl CostMeter {
    fn step(&mut self, steps: u64) -> Result<(), CostError> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > self.most {
            return Err(CostError(format!(
                "the SVG takes more than {} million steps to draw: simplify its areas, paths, dashes, patterns and filters",
                self.most / 1_000_000
            )));
        }
        Ok(())
    }

    /// Runs `work` while `bytes` are in use.
    fn held(
        &mut self,
        bytes: u64,
        work: impl FnOnce(&mut Self) -> Result<(), CostError>,
    ) -> Result<(), CostError> {
        self.bytes = self.bytes.saturating_add(bytes);
        self.layers += 1;
        if self.bytes > MAX_BYTES {
            return Err(CostError(format!(
                "the SVG has {} nested layers of more than {} MiB here: layers are groups with an opacity, mask, clip path, filter or blend mode, and pattern tiles",
                self.layers,
                MAX_BYTES >> 20
            )));
        }
        let done = work(self);
        self.bytes -= bytes;
        self.layers -= 1;
        done
    }

    fn nodes(
        &mut self,
        parent: &Group,
        canvas: Canvas,
        largest: IntRect,
        transform: Transform,
    ) -> Result<(), CostError> {
        for node in parent.children() {
            self.step(NODE_STEPS)?;
            match node {
                Node::Group(group) => self.group(group, canvas, largest, transform)?,
                Node::Text(text) => self.group(text.flattened(), canvas, largest, transform)?,
                Node::Path(path) => self.path(path, canvas, largest, transform)?,
                // Embedded images are disabled, so they cost nothing.
                Node::Image(_) => {}
            }
        }
        Ok(())
    }

    fn group(
        &mut self,
        group: &Group,
        canvas: Canvas,
        largest: IntRect,
        transform: Transform,
    ) -> Result<(), CostError> {
        let transform = transform.pre_concat(group.transform());
        if !group.should_isolate() {
            return self.nodes(group, canvas, largest, transform);
        }
        let Some((layer, largest, transform)) = layer(group, largest, transform) else {
            // The renderer skips the group, too.
            return Ok(());
        };
        let pixels = layer.pixels();
        self.step(pixels.saturating_mul(LAYER_STEPS))?;
        self.held(pixels.saturating_mul(PIXEL_BYTES), |meter| {
            meter.nodes(group, layer, largest, transform)?;
            for filter in group.filters() {
                let parts = filter.primitives().len() as u64;
                let kept = pixels.saturating_mul((parts + EXTRA_FILTER_BUFFERS) * PIXEL_BYTES);
                meter.held(kept, |_| Ok(()))?;
                meter.step(pixels.saturating_mul((parts + 1) * FILTER_STEPS))?;
            }
            if let Some(clip) = group.clip_path() {
                meter.clip(clip, layer, largest, transform)?;
            }
            match group.mask() {
                Some(mask) => meter.mask(mask, layer, largest, transform),
                None => Ok(()),
            }
        })
    }

    /// Adds the cost of a clip path: a surface for its paths, and a mask made from the surface. Nested clip paths take surfaces of their own.
    fn clip(
        &mut self,
        clip: &ClipPath,
        canvas: Canvas,
        largest: IntRect,
        transform: Transform,
    ) -> Result<(), CostError> {
        let pixels = canvas.pixels();
        self.step(pixels.saturating_mul(LAYER_STEPS))?;
        self.held(pixels.saturating_mul(PIXEL_BYTES + 1), |meter| {
            let within = transform.pre_concat(clip.transform());
            meter.nodes(clip.root(), canvas, largest, within)?;
            match clip.clip_path() {
                Some(next) => meter.clip(next, canvas, largest, transform),
                None => Ok(()),
            }
        })
    }

    /// Adds the cost of a mask: a surface, a mask of its region, and a mask made from both.
    fn mask(
        &mut self,
        mask: &Mask,
        canvas: Canvas,
        largest: IntRect,
        transform: Transform,
    ) -> Result<(), CostError> {
        let pixels = canvas.pixels();
        self.step(pixels.saturating_mul(LAYER_STEPS))?;
        self.held(pixels.saturating_mul(PIXEL_BYTES + 2), |meter| {
            meter.nodes(mask.root(), canvas, largest, transform)?;
            match mask.mask() {
                Some(next) => meter.mask(next, canvas, largest, transform),
                None => Ok(()),
            }
        })
    }

    fn path(
        &mut self,
        path: &Path,
        canvas: Canvas,
        largest: IntRect,
        transform: Transform,
    ) -> Result<(), CostError> {
        if !path.is_visible() {
            return Ok(());
        }
        let outline = PathOutline::of(path, canvas, transform);
        let area = |area: Rect| {
            let area = area.transform(transform);
            area.map_or(canvas.pixels(), |area| canvas.covered(area))
        };
        if let Some(fill) = path.fill() {
            let colour = self.paint(fill.paint(), largest, transform)?;
            self.step(area(path.bounding_box()).saturating_mul(colour))?;
            self.step(outline.steps)?;
            self.held(outline.bytes, |_| Ok(()))?;
        }
        if let Some(stroke) = path.stroke() {
            let colour = self.paint(stroke.paint(), largest, transform)?;
            self.step(area(path.stroke_bounding_box()).saturating_mul(colour))?;
            let (sx, sy) = transform.get_scale();
            let width = f64::from(stroke.width().get() * sx.max(sy));
            let across = width.min(f64::from(canvas.height)) as u64 * STROKE_EDGES * EDGE_STEPS;
            let corners = outline.segments.saturating_mul(across);
            self.step(
                outline
                    .steps
                    .saturating_mul(STROKE_EDGES)
                    .saturating_add(corners),
            )?;
            let mut bytes = outline.bytes.saturating_mul(STROKE_EDGES);
            if let Some(dashes) = stroke.dasharray() {
                let period: f64 = dashes.iter().copied().map(f64::from).sum();
                let count = outline.length / period * dashes.len() as f64;
                self.step((count as u64).saturating_mul(DASH_STEPS + across))?;
                bytes = bytes.saturating_add((count as u64).saturating_mul(SEGMENT_COST));
            }
            self.held(bytes, |_| Ok(()))?;
        }
        Ok(())
    }

    /// Returns the steps per pixel of a paint. A pattern's tile is added first.
    fn paint(
        &mut self,
        paint: &Paint,
        largest: IntRect,
        transform: Transform,
    ) -> Result<u64, CostError> {
        match paint {
            Paint::Color(_) => Ok(1),
            Paint::LinearGradient(gradient) => Ok(4 + gradient.stops().len() as u64),
            Paint::RadialGradient(gradient) => Ok(8 + gradient.stops().len() as u64),
            Paint::Pattern(pattern) => {
                self.tile(pattern, largest, transform)?;
                Ok(32)
            }
        }
    }

    fn tile(
        &mut self,
        pattern: &Pattern,
        largest: IntRect,
        transform: Transform,
    ) -> Result<(), CostError> {
        let (sx, sy) = transform.pre_concat(pattern.transform()).get_scale();
        let side = |length: f32| length.round() as u32;
        let tile = Canvas {
            width: side(pattern.rect().width() * sx),
            height: side(pattern.rect().height() * sy),
        };
        let pixels = tile.pixels();
        self.step(pixels)?;
        self.held(pixels.saturating_mul(PIXEL_BYTES), |meter| {
            meter.nodes(pattern.root(), tile, largest, Transform::from_scale(sx, sy))
        })
    }
}

/// Computes a group's layer as resvg does (`render_group` and `render_layer`): its size, the maximum size of layers within it, and the transform of its content.
fn layer(
    group: &Group,
    largest: IntRect,
    transform: Transform,
) -> Option<(Canvas, IntRect, Transform)> {
    let turned = if group.filters().is_empty() {
        Transform::identity()
    } else {
        let sx = transform.sx.hypot(transform.ky);
        let sy = transform.kx.hypot(transform.sy);
        Transform::from_row(
            transform.sx / sx,
            transform.ky / sx,
            transform.kx / sy,
            transform.sy / sy,
            0.0,
            0.0,
        )
    };
    let back = turned.invert()?;
    let largest = largest.to_rect().transform(back)?.round_out()?;
    let transform = back.pre_concat(transform);
    let area: NonZeroRect = group.layer_bounding_box().transform(transform)?;
    // Two more pixels on each side, for antialiasing.
    let left = (area.left().floor() - 2.0).max(largest.left() as f32);
    let top = (area.top().floor() - 2.0).max(largest.top() as f32);
    let right = (area.right().ceil() + 2.0).min(largest.right() as f32);
    let bottom = (area.bottom().ceil() + 2.0).min(largest.bottom() as f32);
    let canvas = Canvas {
        width: (right - left).max(1.0) as u32,
        height: (bottom - top).max(1.0) as u32,
    };
    let moved = Transform::from_translate(-left, -top);
    Some((canvas, largest, moved.pre_concat(transform)))
}

/// The cost of following the edges of a path.
struct PathOutline {
    steps: u64,
    bytes: u64,
    segments: u64,
    /// An upper bound of the length, in user units.
    length: f64,
}

impl PathOutline {
    fn of(path: &Path, canvas: Canvas, transform: Transform) -> Self {
        let (mut segments, mut rows, mut length) = (0_u64, 0_u64, 0_f64);
        let high = f64::from(canvas.height);
        let (mut begin, mut at) = (Point::zero(), Point::zero());
        let mut line = |from: Point, to: Point| {
            let (dx, dy) = (f64::from(to.x - from.x), f64::from(to.y - from.y));
            length += dx.hypot(dy);
            let down = f64::from(transform.ky) * dx + f64::from(transform.sy) * dy;
            rows += down.abs().min(high) as u64 + 1;
        };
        for segment in path.data().segments() {
            segments += 1;
            // A curve is never longer than its control polygon.
            match segment {
                PathSegment::MoveTo(to) => (begin, at) = (to, to),
                PathSegment::LineTo(to) => {
                    line(at, to);
                    at = to;
                }
                PathSegment::QuadTo(one, to) => {
                    line(at, one);
                    line(one, to);
                    at = to;
                }
                PathSegment::CubicTo(one, two, to) => {
                    line(at, one);
                    line(one, two);
                    line(two, to);
                    at = to;
                }
                PathSegment::Close => {
                    line(at, begin);
                    at = begin;
                }
            }
        }
        Self {
            steps: rows
                .saturating_mul(EDGE_STEPS)
                .saturating_add(segments.saturating_mul(SEGMENT_COST)),
            bytes: segments.saturating_mul(SEGMENT_COST),
            segments,
            length,
        }
    }
}
