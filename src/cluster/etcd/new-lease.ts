import { randomBytes } from "node:crypto";
import type { LeaseId } from "../../protocols/service/keyspace/vocabulary.ts";

/** Returns a random positive 62-bit number. Larger numbers belong to sessions. */
export const newLease = (): LeaseId => String((randomBytes(8).readBigUInt64BE() >> 2n) | 1n);
