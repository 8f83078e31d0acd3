/** The thread of `coterie check-history`. */
import { answerWithin } from "./check-history.ts";
import { workInThread } from "./thread.ts";

workInThread(answerWithin);
