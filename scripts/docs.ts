/** `npm run docs` updates the generated parts of docs/ and deploy/monitoring/. test/docs fails when they are not up to date. */
import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { generatedPages } from './docs/pages.ts';

for (const { path, present, wanted } of await generatedPages()) {
  if (present !== wanted) writeFileSync(path, wanted);
  console.log(`${relative(process.cwd(), path)}: ${present === wanted ? 'up to date' : 'written'}`);
}
