import { randomBytes } from "node:crypto";
import type { LeaseId } from "../../protocols/service/keyspace/vocabulary.ts";

/** Any positive number of 63 bits. */
export const newLease = (): LeaseId => String((randomBytes(8).readBigUInt64BE() >> 1n) | 1n);
