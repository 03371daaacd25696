use std::io;

use super::{
    super::{
        error::{ImageDamage, ImageError},
        slots::Slots,
        source::Source,
        walk::{Content, Extent},
    },
    header::Header,
};

/// Entries are read so many at a time, 2 to this power.
const PIECE_BITS: u32 = 9;
/// So many pieces of tables are kept, for all layers together: 4 MiB.
const PIECES: usize = 1024;

/// Where a table or a cluster is, among the bits of an entry.
const OFFSET: u64 = 0x00ff_ffff_ffff_fe00;
const COMPRESSED: u64 = 1 << 62;
const ZERO: u64 = 1;

/// The pieces of tables that were read lately.
#[derive(Debug)]
pub(in super::super) struct Tables(Slots<Vec<u64>>);

impl Tables {
    pub(in super::super) fn new() -> Self {
        Self(Slots::new(PIECES, PIECE_BITS + 3))
    }

    /// Looks at the entries of a table from `index` on: at least one, and not
    /// all that follow. The table has `count` and is all in the file.
    ///
    /// What is kept depends on the place alone, not on the table: a hostile file
    /// can have tables of different lengths at the same place.
    fn with<R>(
        &self,
        layer: Numbered<'_>,
        (table, count): (u64, u64),
        index: u64,
        look: impl FnOnce(&[u64]) -> R,
    ) -> io::Result<R> {
        let skip = index & ((1 << PIECE_BITS) - 1);
        let first = index - skip;
        let offset = table + first * 8;
        let load = || {
            let mut bytes = vec![0; 8 << PIECE_BITS];
            layer.source.read_padded(offset, &mut bytes)?;
            let (entries, _) = bytes.as_chunks();
            Ok(entries
                .iter()
                .map(|entry| u64::from_be_bytes(*entry))
                .collect())
        };
        let most = (count - first).min(1 << PIECE_BITS);
        let wanted = skip as usize..most as usize;
        self.0
            .with((layer.number, offset), load, |entries: &Vec<u64>| {
                look(entries.get(wanted).unwrap_or_default())
            })
    }
}

/// A layer, and its number in the chain.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Numbered<'a> {
    pub(in super::super) number: usize,
    pub(in super::super) source: &'a Source,
    pub(in super::super) header: &'a Header,
}

/// What the layer has at a place of the disk, and how far that goes; not beyond
/// `end`, which is not beyond the disk.
pub(in super::super) fn lookup(
    layer: Numbered<'_>,
    tables: &Tables,
    at: u64,
    end: u64,
) -> io::Result<Extent> {
    let Numbered { source, header, .. } = layer;
    let cluster = header.cluster();
    let cluster_bits = header.cluster_bits;
    // A table of the second level fills a cluster with entries of 8 bytes.
    let l2_bits = cluster_bits - 3;
    let reach_bits = cluster_bits + l2_bits;
    let damaged = |damage| {
        let path = source.path.clone();
        io::Error::from(ImageError::Damaged { path, damage })
    };

    let l1 = (header.l1_offset, header.l1_entries);
    let index = at >> reach_bits;
    let most = ((end - 1) >> reach_bits) - index + 1;
    let (l2_offset, absent) = tables.with(layer, l1, index, |entries| {
        let first = entries.first().map_or(0, |entry| entry & OFFSET);
        let absent = entries.iter().take(most as usize);
        (
            first,
            absent.take_while(|entry| *entry & OFFSET == 0).count(),
        )
    })?;
    if l2_offset == 0 {
        let until = (index + absent.max(1) as u64) << reach_bits;
        return Ok(Extent::new(at, until.min(end), Content::Absent));
    }
    if !header.is_aligned(l2_offset) || !source.reaches(l2_offset + cluster) {
        return Err(damaged(ImageDamage::Table { offset: l2_offset }));
    }

    let within = at & (cluster - 1);
    let first = at - within;
    let most = (end - first + cluster - 1) >> cluster_bits;
    let l2 = (l2_offset, 1 << l2_bits);
    let index = (first >> cluster_bits) & ((1 << l2_bits) - 1);
    let found = tables.with(layer, l2, index, |entries| {
        let content = content_of(layer, entries.first(), first)?;
        let count = entries
            .iter()
            .take(most as usize)
            .enumerate()
            .take_while(|(number, entry)| goes_on(layer, content, *number, entry))
            .count();
        Ok((content, count))
    })?;
    let (content, count) = found.map_err(damaged)?;
    let until = first + ((count.max(1) as u64) << cluster_bits);
    Ok(Extent::new(at, until.min(end), content.skip(within)))
}

/// What an entry stands for, whose cluster is at `at` of the disk.
fn content_of(layer: Numbered<'_>, entry: Option<&u64>, at: u64) -> Result<Content, ImageDamage> {
    let Some(entry) = entry else {
        return Ok(Content::Absent);
    };
    let Numbered { header, source, .. } = layer;
    if entry & COMPRESSED != 0 {
        return packed(layer, *entry, at);
    }
    let offset = entry & OFFSET;
    if entry & ZERO != 0 && header.version >= 3 {
        return Ok(Content::Zero);
    }
    if offset == 0 {
        return Ok(Content::Absent);
    }
    if !header.is_aligned(offset) || !source.reaches(offset + 1) {
        return Err(ImageDamage::Data { at, offset });
    }
    Ok(Content::Data { offset })
}

/// A compressed cluster is anywhere in the file; its length is told in sectors.
fn packed(layer: Numbered<'_>, entry: u64, at: u64) -> Result<Content, ImageDamage> {
    let Numbered { header, source, .. } = layer;
    let length_bits = header.cluster_bits - 8;
    let offset_bits = 62 - length_bits;
    let offset = entry & ((1 << offset_bits) - 1);
    let sectors = (entry >> offset_bits) & ((1 << length_bits) - 1);
    if !source.reaches(offset + 1) {
        return Err(ImageDamage::Data { at, offset });
    }
    Ok(Content::Packed {
        offset,
        // The first sector is not counted.
        length: (sectors + 1) * 512 - offset % 512,
        within: 0,
    })
}

/// Whether the entry that comes `number` after the first goes on with its
/// content.
fn goes_on(layer: Numbered<'_>, first: Content, number: usize, entry: &u64) -> bool {
    if number == 0 {
        return true;
    }
    // Whatever is wrong with this one is told when it is its turn.
    let Ok(content) = content_of(layer, Some(entry), 0) else {
        return false;
    };
    match first {
        Content::Absent | Content::Zero => content == first,
        Content::Data { offset } => {
            let offset = offset + number as u64 * layer.header.cluster();
            content == Content::Data { offset }
        }
        Content::Packed { .. } => false,
    }
}
