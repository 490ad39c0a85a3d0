"""The names of Python's own modules.

A fixed list, so that the same file gets the same verdict from every Python: `sys.stdlib_module_names` of
3.8 to 3.14, and Python 2's names, which a pickle of protocol 2 may use.
"""

from __future__ import annotations

_NAMES = """
BaseHTTPServer CGIHTTPServer ConfigParser DocXMLRPCServer HTMLParser SimpleHTTPServer SimpleXMLRPCServer
SocketServer StringIO Tix Tkconstants Tkdnd Tkinter UserDict UserList UserString __builtin__ __future__ _abc
_abcoll _aix_support _android_support _apple_support _ast _ast_unparse _asyncio _bisect _blake2 _bootlocale
_bootsubprocess _bz2 _codecs _codecs_cn _codecs_hk _codecs_iso2022 _codecs_jp _codecs_kr _codecs_tw _collections
_collections_abc _colorize _compat_pickle _compression _contextvars _crypt _csv _ctypes _curses _curses_panel
_datetime _dbm _decimal _elementtree _frozen_importlib _frozen_importlib_external _functools _gdbm _hashlib
_heapq _hmac _imp _interpchannels _interpqueues _interpreters _io _ios_support _json _locale _lsprof _lzma
_markupbase _md5 _msi _multibytecodec _multiprocessing _opcode _opcode_metadata _operator _osx_support
_overlapped _pickle _posixshmem _posixsubprocess _py_abc _py_warnings _pydatetime _pydecimal _pyio _pylong
_pyrepl _queue _random _remote_debugging _scproxy _sha1 _sha256 _sha3 _sha512 _signal _sitebuiltins _socket
_sqlite3 _sre _ssl _stat _statistics _string _strptime _struct _suggestions _symtable _sysconfig _thread
_threading_local _tkinter _tokenize _tracemalloc _types _typing _uuid _warnings _weakref _weakrefset _winapi
_winreg _zoneinfo _zstd abc aifc annotationlib antigravity anydbm argparse array ast asynchat asyncio asyncore
atexit audioop base64 bdb binascii binhex bisect builtins bz2 cPickle cProfile cStringIO calendar cgi cgitb chunk
cmath cmd code codecs codeop collections colorsys compileall compression concurrent configparser contextlib
contextvars cookielib copy copy_reg copyreg crypt csv ctypes curses dataclasses datetime dbhash dbm decimal
difflib dis distutils doctest dumbdbm dummy_thread dummy_threading email encodings ensurepip enum errno
exceptions faulthandler fcntl filecmp fileinput fnmatch fractions ftplib functools gc gdbm genericpath getopt
getpass gettext glob graphlib grp gzip hashlib heapq hmac html htmlentitydefs http httplib idlelib imaplib
imghdr imp importlib inspect io ipaddress itertools json keyword lib2to3 linecache locale logging lzma mailbox
mailcap markupbase marshal math mimetypes mmap modulefinder msilib msvcrt multiprocessing netrc nis nntplib nt
ntpath nturl2path numbers opcode operator optparse os ossaudiodev pathlib pdb pickle pickletools pipes pkgutil
platform plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc pydoc_data
pyexpat queue quopri random re readline repr reprlib resource rlcompleter robotparser runpy sched secrets select
selectors shelve shlex shutil signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile
sre_constants sre_parse ssl stat statistics string stringprep struct subprocess sunau symtable sys sysconfig
syslog tabnanny tarfile telnetlib tempfile termios test textwrap this thread threading time timeit
tkColorChooser tkCommonDialog tkFileDialog tkFont tkMessageBox tkSimpleDialog tkinter token tokenize tomllib
trace traceback tracemalloc ttk tty turtle turtledemo types typing unicodedata unittest urllib urllib2 urlparse
uu uuid venv warnings wave weakref webbrowser whichdb winreg winsound wsgiref xdrlib xml xmlrpc xmlrpclib zipapp
zipfile zipimport zlib zoneinfo
"""

STANDARD_LIBRARY = frozenset(_NAMES.split())
