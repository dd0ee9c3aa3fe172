import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

// The tests run as compiled by `npm run build`: what is tested is what ships, workers and child processes included.
export default defineConfig({
  test: {
    dir: 'dist/test',
    include: ['**/*.test.js'],
    exclude: [],
    // Node imports what is tested, as when it is run; Vite only the tests.
    server: { deps: { external: [/^(?!.*\/node_modules\/).*\/dist\/(?!.*\.test\.js$)/] } },
    pool: 'forks',
    // On two cores the default is one: half of the time is spent waiting for brokers, clocks and disks.
    maxWorkers: Math.max(4, availableParallelism() - 1),
    // Only a test that hangs takes so long: no test is to fail because the machine is busy.
    testTimeout: 900_000,
    hookTimeout: 900_000,
    // What a browser shows comes when it comes: on a busy machine not within the second that is usual.
    expect: { poll: { timeout: 30_000 } },
    reporters: ['default', ['json', { outputFile: '.cache/test-results.json' }]],
  },
});
