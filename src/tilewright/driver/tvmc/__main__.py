"""``python -m tilewright.driver.tvmc``: the command line, under the name that TVM's documentation uses."""

from tilewright.driver.tvmc.main import main

if __name__ == "__main__":
    main()
