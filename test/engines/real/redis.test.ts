/**
 * Redis as Debian packages it: what is guaranteed, while it is killed, paused and started again.
 * @module-tag long
 */
import { triesGuarantees } from "./guarantees.ts";

triesGuarantees("redis");
