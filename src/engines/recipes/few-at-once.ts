/** Looks at many things over one connection, on which others wait as well. */

const AT_ONCE = 32;

export async function fewAtOnce<T>(all: readonly T[], work: (each: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < all.length; at += AT_ONCE) await Promise.all(all.slice(at, at + AT_ONCE).map(work));
}
