import { mount } from "svelte";
import "./page.css";
import "./elements.css";
import App from "./app.svelte";

const target = document.getElementById("studio");
if (target === null) throw new Error("expected an element with the id “studio” in index.html");
mount(App, { target });
