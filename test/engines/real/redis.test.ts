/**
 * Redis as Debian packages it: what is promised, while it is killed, paused and started again.
 * @module-tag long
 */
import { triesPromises } from "./promises.ts";

triesPromises("redis");
