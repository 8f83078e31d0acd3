/** A page with a content security policy may not compile text: zod is told before its first schema is made. */
import { z } from "zod";

z.config({ jitless: true });
