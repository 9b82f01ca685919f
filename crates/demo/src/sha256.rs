//! SHA-256 (FIPS 180-4) for small files.

/// Returns the digest of `bytes` in lower-case hexadecimal.
pub fn hex_digest(bytes: &[u8]) -> String {
    let mut state = square_roots();
    let constants = cube_roots();
    for block in pad_message(bytes).chunks_exact(64) {
        compress(&mut state, block, &constants);
    }
    state.iter().map(|word| format!("{word:08x}")).collect()
}

/// Pads the message with a one bit, zeros and the length in bits to whole blocks.
fn pad_message(bytes: &[u8]) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend((bytes.len() as u64 * 8).to_be_bytes());
    padded
}

fn compress(state: &mut [u32; 8], block: &[u8], constants: &[u32; 64]) {
    let schedule = schedule(block);
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (word, constant) in schedule.iter().zip(constants) {
        let chosen = (e & f) ^ (!e & g);
        let sum_e = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let first = h.wrapping_add(sum_e).wrapping_add(chosen).wrapping_add(*constant).wrapping_add(*word);
        let majority = (a & b) ^ (a & c) ^ (b & c);
        let sum_a = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let second = sum_a.wrapping_add(majority);
        (h, g, f, e) = (g, f, e, d.wrapping_add(first));
        (d, c, b, a) = (c, b, a, first.wrapping_add(second));
    }
    for (word, change) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *word = word.wrapping_add(change);
    }
}

fn schedule(block: &[u8]) -> [u32; 64] {
    let mut words = [0; 64];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
    }
    for place in 16..64 {
        let (early, late) = (words[place - 15], words[place - 2]);
        let small = early.rotate_right(7) ^ early.rotate_right(18) ^ (early >> 3);
        let large = late.rotate_right(17) ^ late.rotate_right(19) ^ (late >> 10);
        words[place] = words[place - 16].wrapping_add(small).wrapping_add(words[place - 7]).wrapping_add(large);
    }
    words
}

/// Returns the first 32 fractional bits of the square roots of the first eight primes.
fn square_roots() -> [u32; 8] {
    root_fractions(2)
}

/// Returns the first 32 fractional bits of the cube roots of the first 64 primes.
fn cube_roots() -> [u32; 64] {
    root_fractions(3)
}

/// Returns the first 32 fractional bits of the roots of the first primes.
fn root_fractions<const COUNT: usize>(degree: u32) -> [u32; COUNT] {
    let mut primes = (2_u128..).filter(|number| (2..*number).all(|divisor| number % divisor != 0));
    std::array::from_fn(|_| {
        let prime = primes.next().expect("there is always another prime");
        // The root of prime * 2^(32 * degree) is the root of the prime with 32 fractional bits.
        integer_root(prime << (32 * degree), degree) as u32
    })
}

/// Returns the largest integer root. The root has less than 37 bits here.
fn integer_root(number: u128, degree: u32) -> u128 {
    (0..37).rev().fold(0, |root, bit| {
        let larger = root | 1 << bit;
        if larger.pow(degree) <= number { larger } else { root }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_vectors_come_out() {
        let million = vec![b'a'; 1_000_000];
        let table: [(&[u8], &str); 4] = [
            (b"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            (b"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            ),
            (&million, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
        ];
        for (message, digest) in table {
            assert_eq!(hex_digest(message), digest);
        }
    }
}
