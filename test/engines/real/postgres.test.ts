/**
 * PostgreSQL as Debian packages it: its guarantees while the server is killed, paused and restarted.
 * @module-tag long
 */
import { triesGuarantees } from "./guarantees.ts";

triesGuarantees("postgres");
