// Light or dark: the system's choice until the button overrides it. A classic script in the head: it runs before the first paint.
(() => {
  const NAME = 'dragoman-theme';
  const root = document.documentElement;
  const system = matchMedia('(prefers-color-scheme: dark)');
  const stored = () => { try { return localStorage.getItem(NAME); } catch { return null; } };
  const isDark = () => (root.dataset.theme ?? (system.matches ? 'dark' : 'light')) === 'dark';

  if (['light', 'dark'].includes(stored())) root.dataset.theme = stored();

  addEventListener('DOMContentLoaded', () => {
    const button = document.getElementById('theme');
    const show = () => {
      button.textContent = isDark() ? 'Light' : 'Dark';
      button.title = isDark() ? 'Light colours' : 'Dark colours';
    };
    button.addEventListener('click', () => {
      root.dataset.theme = isDark() ? 'light' : 'dark';
      try { localStorage.setItem(NAME, root.dataset.theme); } catch { /* Not kept. */ }
      show();
    });
    system.addEventListener('change', show);
    show();
  });
})();
