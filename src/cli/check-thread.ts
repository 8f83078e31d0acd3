/** A thread of `coterie check`. */
import { answerTo } from "./check-search.ts";
import { workInThread } from "./thread.ts";

workInThread(answerTo);
