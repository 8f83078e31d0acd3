/**
 * SHA-256 (FIPS 180-4) of a text's UTF-8 bytes, in hexadecimal: what stands for a text where nobody may find another one with
 * the same. Written out here since handlers run in browsers too, and cannot wait for what the platform offers there.
 */
export function digest(text: string): string {
  const words = padded(new TextEncoder().encode(text));
  const hash = Int32Array.from(INITIAL);
  const schedule = new Int32Array(64);
  for (let block = 0; block < words.length; block += 16) {
    expand(words, block, schedule);
    compress(hash, schedule);
  }
  return Array.from(hash, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}

/** A digest is so long. */
export const DIGEST_CHARS = 64;

/** The bits of √p (`root` 2) or ∛p (3) behind the point, for the first primes p. */
function fractions(count: number, root: 2 | 3): Int32Array {
  const primes: number[] = [];
  for (let n = 2; primes.length < count; n++) if (primes.every((prime) => n % prime !== 0)) primes.push(n);
  return Int32Array.from(primes, (prime) => Math.floor((exactRoot(prime, root) % 1) * 2 ** 32));
}

/** Doubles hold √p and ∛p of small primes with more than the 32 bits that are needed, but `Math.cbrt` may be off in the last. */
const exactRoot = (prime: number, root: 2 | 3): number => (root === 2 ? Math.sqrt(prime) : Math.cbrt(prime));

const INITIAL = fractions(8, 2);
const CONSTANTS = fractions(64, 3);

/** A bit 1, zeros, and the length in bits, so that it fills whole blocks of sixteen words. */
function padded(bytes: Uint8Array): Int32Array {
  const filled = new DataView(new ArrayBuffer(64 * Math.ceil((bytes.length + 9) / 64)));
  new Uint8Array(filled.buffer).set(bytes);
  filled.setUint8(bytes.length, 0x80);
  filled.setUint32(filled.byteLength - 8, Math.floor(bytes.length / 2 ** 29));
  filled.setUint32(filled.byteLength - 4, (bytes.length << 3) >>> 0);
  return Int32Array.from({ length: filled.byteLength / 4 }, (_, at) => filled.getInt32(4 * at));
}

const rotated = (word: number, bits: number): number => (word >>> bits) | (word << (32 - bits));
const wordAt = (words: Int32Array, at: number): number => words[at] as number;

function expand(words: Int32Array, block: number, schedule: Int32Array): void {
  for (let t = 0; t < 16; t++) schedule[t] = wordAt(words, block + t);
  for (let t = 16; t < 64; t++) {
    const early = wordAt(schedule, t - 15);
    const late = wordAt(schedule, t - 2);
    const s0 = rotated(early, 7) ^ rotated(early, 18) ^ (early >>> 3);
    const s1 = rotated(late, 17) ^ rotated(late, 19) ^ (late >>> 10);
    schedule[t] = (wordAt(schedule, t - 16) + s0 + wordAt(schedule, t - 7) + s1) | 0;
  }
}

function compress(hash: Int32Array, schedule: Int32Array): void {
  let [a, b, c, d] = [wordAt(hash, 0), wordAt(hash, 1), wordAt(hash, 2), wordAt(hash, 3)];
  let [e, f, g, h] = [wordAt(hash, 4), wordAt(hash, 5), wordAt(hash, 6), wordAt(hash, 7)];
  for (let t = 0; t < 64; t++) {
    const s1 = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25);
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + wordAt(CONSTANTS, t) + wordAt(schedule, t)) | 0;
    const s0 = rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22);
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  for (const [at, word] of [a, b, c, d, e, f, g, h].entries()) hash[at] = wordAt(hash, at) + word;
}
