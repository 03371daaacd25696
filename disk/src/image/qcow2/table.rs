use std::io;

use super::{
    super::{
        chain_walk::{Content, Extent},
        direct_mapped_cache::DirectMappedCache,
        error::{ImageDamage, ImageError},
        source::Source,
    },
    header::Header,
};

/// Log2 of the number of entries read at a time.
const CHUNK_BITS: u32 = 9;
/// Number of cached chunks of tables, for all layers together: 4 MiB.
const CACHED_CHUNKS: usize = 1024;

/// The bits of an entry with the offset of a table or cluster.
const OFFSET: u64 = 0x00ff_ffff_ffff_fe00;
const COMPRESSED: u64 = 1 << 62;
const ZERO: u64 = 1;

/// A cache of the tables of all layers.
#[derive(Debug)]
pub(in super::super) struct TableCache(DirectMappedCache<Vec<u64>>);

impl TableCache {
    pub(in super::super) fn new() -> Self {
        Self(DirectMappedCache::new(CACHED_CHUNKS, CHUNK_BITS + 3))
    }

    /// Calls `look` with entries of a table from `index` on: at least one, but
    /// not necessarily all. The table has `count` entries, all within the file.
    ///
    /// The cache key is the offset alone, not the table: a hostile file can
    /// have tables of different lengths at the same offset.
    fn with<R>(
        &self,
        layer: LayerRef<'_>,
        (table, count): (u64, u64),
        index: u64,
        look: impl FnOnce(&[u64]) -> R,
    ) -> io::Result<R> {
        let skip = index & ((1 << CHUNK_BITS) - 1);
        let first = index - skip;
        let offset = table + first * 8;
        let load = || {
            let mut bytes = vec![0; 8 << CHUNK_BITS];
            layer.source.read_padded(offset, &mut bytes)?;
            let (entries, _) = bytes.as_chunks();
            Ok(entries
                .iter()
                .map(|entry| u64::from_be_bytes(*entry))
                .collect())
        };
        let most = (count - first).min(1 << CHUNK_BITS);
        let wanted = skip as usize..most as usize;
        self.0
            .with((layer.number, offset), load, |entries: &Vec<u64>| {
                look(entries.get(wanted).unwrap_or_default())
            })
    }
}

/// A qcow2 layer and its number in the chain.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct LayerRef<'a> {
    pub(in super::super) number: usize,
    pub(in super::super) source: &'a Source,
    pub(in super::super) header: &'a Header,
}

/// Returns what the layer stores at an offset of the disk, and where that ends.
/// `end` must not be beyond the disk; the result does not reach beyond it.
pub(in super::super) fn lookup(
    layer: LayerRef<'_>,
    tables: &TableCache,
    at: u64,
    end: u64,
) -> io::Result<Extent> {
    let LayerRef { source, header, .. } = layer;
    let cluster = header.cluster();
    let cluster_bits = header.cluster_bits;
    // An L2 table is one cluster of 8-byte entries.
    let l2_bits = cluster_bits - 3;
    let l1_entry_bits = cluster_bits + l2_bits;
    let damaged = |damage| {
        let path = source.path.clone();
        io::Error::from(ImageError::Damaged { path, damage })
    };

    let l1 = (header.l1_offset, header.l1_entries);
    let index = at >> l1_entry_bits;
    let most = ((end - 1) >> l1_entry_bits) - index + 1;
    let (l2_offset, absent) = tables.with(layer, l1, index, |entries| {
        let first = entries.first().map_or(0, |entry| entry & OFFSET);
        let absent = entries.iter().take(most as usize);
        (
            first,
            absent.take_while(|entry| *entry & OFFSET == 0).count(),
        )
    })?;
    if l2_offset == 0 {
        let until = (index + absent.max(1) as u64) << l1_entry_bits;
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
            .take_while(|(number, entry)| continues(layer, content, *number, entry))
            .count();
        Ok((content, count))
    })?;
    let (content, count) = found.map_err(damaged)?;
    let until = first + ((count.max(1) as u64) << cluster_bits);
    Ok(Extent::new(at, until.min(end), content.skip(within)))
}

/// Decodes the L2 entry of the cluster at offset `at` of the disk.
fn content_of(layer: LayerRef<'_>, entry: Option<&u64>, at: u64) -> Result<Content, ImageDamage> {
    let Some(entry) = entry else {
        return Ok(Content::Absent);
    };
    let LayerRef { header, source, .. } = layer;
    if entry & COMPRESSED != 0 {
        return compressed(layer, *entry, at);
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

/// Decodes the entry of a compressed cluster, which can start at any byte and
/// has its length in sectors.
fn compressed(layer: LayerRef<'_>, entry: u64, at: u64) -> Result<Content, ImageDamage> {
    let LayerRef { header, source, .. } = layer;
    let length_bits = header.cluster_bits - 8;
    let offset_bits = 62 - length_bits;
    let offset = entry & ((1 << offset_bits) - 1);
    let sectors = (entry >> offset_bits) & ((1 << length_bits) - 1);
    if !source.reaches(offset + 1) {
        return Err(ImageDamage::Data { at, offset });
    }
    Ok(Content::Compressed {
        offset,
        // The first sector is not counted in the entry.
        length: (sectors + 1) * 512 - offset % 512,
        within: 0,
    })
}

/// Returns whether the entry `number` places after the first continues its
/// content.
fn continues(layer: LayerRef<'_>, first: Content, number: usize, entry: &u64) -> bool {
    if number == 0 {
        return true;
    }
    // An error in this entry is reported when the walk reaches it.
    let Ok(content) = content_of(layer, Some(entry), 0) else {
        return false;
    };
    match first {
        Content::Absent | Content::Zero => content == first,
        Content::Data { offset } => {
            let offset = offset + number as u64 * layer.header.cluster();
            content == Content::Data { offset }
        }
        Content::Compressed { .. } => false,
    }
}
