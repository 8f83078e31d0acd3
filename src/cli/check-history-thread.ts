/** The thread of `coterie check-history`. */
import { answerTo } from "./check-history-search.ts";
import { workInThread } from "./thread.ts";

workInThread(answerTo);
