import { randomBytes } from "node:crypto";
import type { LeaseId } from "../../protocols/service/keyspace/vocabulary.ts";

/** Returns a random positive 63-bit number. */
export const newLease = (): LeaseId => String((randomBytes(8).readBigUInt64BE() >> 1n) | 1n);
