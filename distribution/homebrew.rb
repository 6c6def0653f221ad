# Written by scripts/package_recipes.py: change pyproject.toml or the script, and run it.
class Pellucid < Formula
  desc "Trains, opens up and ships encoder-decoder Transformers"
  homepage "https://example.invalid/pellucid"
  url "https://example.invalid/pellucid/releases/download/v0.2.0/pellucid-0.2.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "Apache-2.0"

  depends_on "python@3.13"

  def install
    system Formula["python@3.13"].opt_bin/"python3.13", "-m", "venv", libexec
    pins = buildpath/"constraints.txt"
    system libexec/"bin/python", "-m", "pip", "install", "-c", pins, "#{buildpath}[fast,serve,documents]"
    bin.install_symlink libexec/"bin/pellucid"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/pellucid --version")
  end
end
