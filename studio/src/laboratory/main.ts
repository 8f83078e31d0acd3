import { mount } from "svelte";
import "../page.css";
import "../elements.css";
import Laboratory from "./laboratory.svelte";

const target = document.getElementById("laboratory");
if (target === null) throw new Error("expected an element with the id “laboratory” in laboratory.html");
mount(Laboratory, { target });
