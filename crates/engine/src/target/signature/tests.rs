//! Marks written by hand at the places their formats say, in the middle of noise.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::*;

const LENGTH: u64 = 3 * MIB + 512;

fn noise(seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; LENGTH as usize];
    Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(&mut bytes);
    bytes
}

fn found_on(bytes: &[u8]) -> Vec<&'static str> {
    let read = |at: u64, buffer: &mut [u8]| {
        buffer.copy_from_slice(&bytes[at as usize..at as usize + buffer.len()]);
        Ok(())
    };
    find(bytes.len() as u64, read).unwrap().into_iter().map(|found| found.what).collect()
}

/// A mark in noise is found, and nothing else with it.
#[track_caller]
fn check(at: u64, magic: &[u8], what: &str) {
    let mut bytes = noise(7);
    bytes[at as usize..at as usize + magic.len()].copy_from_slice(magic);
    let found = found_on(&bytes);
    assert!(found.len() == 1 && found[0].contains(what), "{what} at {at}: {found:?}");
}

#[test]
fn marks_are_found_where_their_formats_put_them() {
    check(512, b"EFI PART", "GPT");
    check(LENGTH - 512, b"EFI PART", "GPT");
    check(0, b"XFSB", "XFS");
    check(65_600, b"_BHRfS_M", "Btrfs");
    check(4086, b"SWAPSPACE2", "swap");
    check(65_526, b"SWAPSPACE2", "swap");
    check(0, b"LUKS\xba\xbe", "LUKS");
    check(512, b"LABELONE", "LVM");
    check(4096, &0xa92b_4efc_u32.to_le_bytes(), "md");
    // Version 1.0: at least 8 KiB before the end, at a multiple of 4 KiB.
    check(3 * MIB - 8 * KIB, &0xa92b_4efc_u32.to_le_bytes(), "md");
    // Version 0.90: at least 64 KiB before the end, at a multiple of 64 KiB; as the machine writes.
    check(3 * MIB - 64 * KIB, &0xa92b_4efc_u32.to_le_bytes(), "md");
    check(3 * MIB - 64 * KIB, &0xa92b_4efc_u32.to_be_bytes(), "md");
    check(LENGTH - KIB, b"Intel Raid ISM Cfg Sig. ", "Intel");
    check(LENGTH - 512, &0xde11_de11_u32.to_be_bytes(), "DDF");
    check(3 * MIB - 4096 + 60, &0x8374_026b_u32.to_be_bytes(), "DRBD");
    check(128 * KIB + 5 * KIB, &0x00ba_b10c_u64.to_le_bytes(), "ZFS");
    // Labels at the end lie at multiples of their own 256 KiB.
    check(3 * MIB - 128 * KIB + 9 * KIB, &0x00ba_b10c_u64.to_le_bytes(), "ZFS");
    check(3, b"NTFS    ", "NTFS");
    check(82, b"FAT32   ", "FAT");
    check(32_769, b"CD001", "ISO");
    check(0, b"bluestore block device", "Ceph");
    check(2 * MIB, &0x2fab_f15e_u32.to_le_bytes(), "VMFS");
}

#[test]
fn every_mark_of_the_table_is_found_in_each_of_its_places_that_the_device_has() {
    for signature in SIGNATURES {
        for place in signature.places {
            let at = match *place {
                Start(at) => at,
                End(back) => LENGTH - back,
                EndAligned(back, multiple, up) => (LENGTH - back) / multiple * multiple + up,
                Every(stretches, step) => stretches[0].from + 3 * step,
            };
            if at + (signature.magic.len() as u64) < LENGTH {
                let mut bytes = noise(11);
                let range = at as usize..at as usize + signature.magic.len();
                bytes[range].copy_from_slice(signature.magic);
                assert!(found_on(&bytes).contains(&signature.what), "{} at {at}", signature.what);
            }
        }
    }
}

#[test]
fn noise_zeros_and_our_own_test_data_carry_nothing() {
    assert_eq!(found_on(&vec![0; LENGTH as usize]), Vec::<&str>::new());
    for seed in 0..20 {
        assert_eq!(found_on(&noise(seed)), Vec::<&str>::new(), "seed {seed}");
    }
}

#[test]
fn two_bytes_alone_do_not_make_a_filesystem() {
    let mut hits = 0;
    for seed in 0..2000 {
        let mut head = vec![0; HEAD_BYTES];
        Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(&mut head);
        head[510..512].copy_from_slice(&[0x55, 0xaa]);
        head[1080..1082].copy_from_slice(&[0x53, 0xef]);
        head[1040..1042].copy_from_slice(&[0x7f, 0x13]);
        hits += usize::from(!weak(&head).is_empty());
    }
    // A first byte that looks like code happens five times in 256.
    assert!(hits < 2000 / 256 * 5 * 2, "{hits} of 2000");
}

#[test]
fn a_partition_table_of_old_needs_a_partition_or_code() {
    let mut head = vec![0; HEAD_BYTES];
    head[510..512].copy_from_slice(&[0x55, 0xaa]);
    assert_eq!(weak(&head), vec![], "an empty table is no loss");
    head[446 + 4] = 0x83;
    head[446 + 12..446 + 16].copy_from_slice(&2048_u32.to_le_bytes());
    assert!(weak(&head)[0].0.contains("MBR"));
    let mut boot = vec![0; HEAD_BYTES];
    boot[0] = 0xeb;
    boot[510..512].copy_from_slice(&[0x55, 0xaa]);
    assert!(weak(&boot)[0].0.contains("boot sector"));
}

#[test]
fn a_device_that_cannot_be_read_is_not_taken_for_empty() {
    let broken = |_: u64, _: &mut [u8]| Err(io::Error::other("medium"));
    assert!(find(LENGTH, broken).is_err());
}

#[test]
fn a_small_device_is_looked_at_as_far_as_it_goes() {
    for length in [0, 511, 512, 4095, 4096, 70_000] {
        assert_eq!(found_on(&vec![0; length]), Vec::<&str>::new(), "{length}");
    }
}
