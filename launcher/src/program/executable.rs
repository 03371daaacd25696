//! What the kernel needs to execute a program.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read as _},
    os::unix::{ffi::OsStringExt as _, fs::FileExt as _},
};

/// A program.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Executable {
    /// What loads its libraries, if it has any: the segment `PT_INTERP` of elf(5).
    pub(crate) loader: Option<OsString>,
    /// What interprets it, if it is a script.
    pub(crate) script: Option<String>,
}

/// More than any path, and than any table of segments.
const MAX_TABLE: usize = 64 * 1024;
const MAX_PATH: usize = 4096;

pub(crate) fn examine(path: &OsStr) -> io::Result<Executable> {
    let file = File::open(path)?;
    let mut start = Vec::new();
    (&file).take(MAX_PATH as u64).read_to_end(&mut start)?;
    if let Some(line) = start.strip_prefix(b"#!") {
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        return Ok(Executable {
            script: Some(String::from_utf8_lossy(line).trim().to_owned()),
            loader: None,
        });
    }
    Ok(Executable {
        loader: loader(&file, &start)?,
        script: None,
    })
}

/// Finds the loader in the segments of a 64-bit ELF file. What is no such file has none, and
/// the kernel will refuse it.
fn loader(file: &File, header: &[u8]) -> io::Result<Option<OsString>> {
    const PT_INTERP: u64 = 3;
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return Ok(None);
    }
    let (Some(offset), Some(size), Some(count)) = (
        number(header, 32, 8),
        number(header, 54, 2),
        number(header, 56, 2),
    ) else {
        return Ok(None);
    };
    let (size, count) = (size as usize, count as usize);
    if size < 56 || size.saturating_mul(count) > MAX_TABLE {
        return Ok(None);
    }
    let mut table = vec![0; size * count];
    file.read_exact_at(&mut table, offset)?;
    let segment = table
        .chunks_exact(size)
        .find(|segment| number(segment, 0, 4) == Some(PT_INTERP));
    let place = segment.and_then(|segment| Some((number(segment, 8, 8)?, number(segment, 32, 8)?)));
    let Some((offset, length)) = place.filter(|(_, length)| *length <= MAX_PATH as u64) else {
        return Ok(None);
    };
    let mut path = vec![0; length as usize];
    file.read_exact_at(&mut path, offset)?;
    path.truncate(
        path.iter()
            .position(|byte| *byte == 0)
            .unwrap_or(path.len()),
    );
    Ok(Some(OsString::from_vec(path)))
}

/// Reads a little-endian number.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let mut number = [0; 8];
    number
        .get_mut(..length)?
        .copy_from_slice(bytes.get(at..at + length)?);
    Some(u64::from_le_bytes(number))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn examine_bytes(bytes: &[u8]) -> io::Result<Executable> {
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(bytes)?;
        examine(file.path().as_os_str())
    }

    #[test]
    fn a_dynamic_program_has_a_loader() {
        let this = std::env::current_exe().unwrap();
        let loader = examine(this.as_os_str()).unwrap().loader.unwrap();
        assert!(std::fs::exists(&loader).unwrap(), "{loader:?}");
    }

    #[test]
    fn a_script_names_its_interpreter() {
        let found = examine_bytes(b"#! /bin/sh -e\nexec qemu\n").unwrap();
        assert_eq!(found.script.as_deref(), Some("/bin/sh -e"));
    }

    #[test]
    fn what_is_no_program_has_neither() {
        let mut header = vec![0; 64];
        header[..6].copy_from_slice(b"\x7fELF\x02\x01");
        // A table beyond the end of the file.
        let mut beyond = header.clone();
        beyond[32..40].fill(0xff);
        (beyond[54], beyond[56]) = (56, 1);
        let mut huge = header.clone();
        huge[54..58].fill(0xff);
        for bytes in [&b""[..], b"\x7fELF", &header, &huge, &[0xff; 100]] {
            assert_eq!(examine_bytes(bytes).unwrap(), Executable::default());
        }
        examine_bytes(&beyond).unwrap_err();
    }
}
