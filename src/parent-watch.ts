/**
 * npm and npx start the process through a shell. A supervisor's SIGTERM ends npm and that shell, which passes
 * nothing on, and the service would go on without anybody knowing it.
 */

const LOOK_MS = 500;

/**
 * Under npm: calls `onGone` once the parent is another than at first. Elsewhere a parent may go, as with
 * nohup.
 */
export function watchParent(
  environment: Readonly<Record<string, string | undefined>>,
  onGone: () => void,
): void {
  if (environment.npm_execpath === undefined) return;
  const parentId = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parentId) return;
    clearInterval(timer);
    onGone();
  }, LOOK_MS);
  timer.unref();
}
