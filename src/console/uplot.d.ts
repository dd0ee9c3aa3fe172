/** The chart library as the page has it: src/http/console-pages.ts serves its file under this name. */

export { default } from 'uplot';
